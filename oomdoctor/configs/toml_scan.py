"""A scanner of TOML that keeps where everything stands: tables, keys, values."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.configs import scalars
from oomdoctor.configs.setting import Scalar, SyntaxFault, TooMuch
from oomdoctor.record import NamedTuple

MAX_VALUES = 20_000


class Pair(NamedTuple):
    """A key in an inline table: its names, its span, the span of its last name, its value."""

    names: tuple[str, ...]
    start: int
    last: tuple[int, int]
    value: Node


class Node(NamedTuple):
    """A value with its span: `items` of a list, `pairs` of an inline table."""

    kind: str
    start: int
    end: int
    value: Scalar = None
    items: tuple[Node, ...] = ()
    pairs: tuple[Pair, ...] = ()


class Entry(NamedTuple):
    """A key on a line of its own: its whole path, the table it stands in, spans, its value."""

    path: tuple[str, ...]
    table: int
    start: int
    last: tuple[int, int]
    value: Node


class Table(NamedTuple):
    """A table: its path, and where its body begins (behind the line of its header)."""

    path: tuple[str, ...]
    body: int


class Document(NamedTuple):
    """All tables, the root first, and all entries, in their order."""

    tables: tuple[Table, ...]
    entries: tuple[Entry, ...]


@cache
def _blank() -> re.Pattern[str]:
    return re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")


@cache
def _key() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")


@cache
def _string() -> re.Pattern[str]:
    return re.compile(
        r'"""(?:[^"\\]|\\.|"(?!"")|"(?=""""))*"""|\'\'\'(?:[^\']|\'(?!\'\')|\'(?=\'\'\'\'))*\'\'\''
        r"|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'",
        re.DOTALL,
    )


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.values = 0

    def fault(self, message: str, at: int) -> SyntaxFault:
        line = self.text.count("\n", 0, at) + 1
        return SyntaxFault(message, line=line, column=at - self.text.rfind("\n", 0, at))

    def skip(self, at: int) -> int:
        found = _blank().match(self.text, at)
        return found.end() if found else at

    def inline(self, at: int) -> int:
        while self.text[at : at + 1] in (" ", "\t") and at < len(self.text):
            at += 1
        return at

    def names(self, at: int) -> tuple[tuple[str, ...], tuple[int, int]]:
        """Read a dotted key: its parts, and the span of the last one."""
        parts: list[str] = []
        while True:
            at = self.inline(at)
            found = _key().match(self.text, at)
            if found is None:
                raise self.fault("expected a key", at)
            parts.append(scalars.unquoted(found.group())[0])
            after = self.inline(found.end())
            if self.text[after : after + 1] != ".":
                return tuple(parts), found.span()
            at = after + 1

    def value(self, at: int, depth: int) -> Node:
        self.values += 1
        if depth > scalars.MAX_NESTING or self.values > MAX_VALUES:
            place = self.fault("too many values, or nested too deep", at)
            raise TooMuch(place.message, line=place.line, column=place.column)
        mark = self.text[at : at + 1]
        if mark == "[":
            return self.sequence(at, depth)
        if mark == "{":
            return self.mapping(at, depth)
        if mark in ('"', "'"):
            found = _string().match(self.text, at)
            if found is None:
                raise self.fault("a text without its closing quote", at)
            return Node("text", at, found.end(), _text(found.group()))
        word = re.compile(r"[^\s,\]}#=][^,\]}#\n]*").match(self.text, at)
        if word is None:
            raise self.fault("expected a value", at)
        said = word.group().rstrip()
        return Node("word", at, at + len(said), scalars.scalar_of(said))

    def sequence(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            items.append(self.value(at, depth + 1))
            at = self.comma(self.skip(items[-1].end), "]")
        return Node("list", start, at + 1, items=tuple(items))

    def mapping(self, start: int, depth: int) -> Node:
        pairs: list[Pair] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            names, last = self.names(at)
            equals = self.inline(last[1])
            if self.text[equals : equals + 1] != "=":
                raise self.fault("expected '=' behind the key", equals)
            value = self.value(self.inline(equals + 1), depth + 1)
            pairs.append(Pair(names, at, last, value))
            at = self.comma(self.skip(value.end), "}")
        return Node("map", start, at + 1, pairs=tuple(pairs))

    def comma(self, at: int, close: str) -> int:
        mark = self.text[at : at + 1]
        if mark == ",":
            return self.skip(at + 1)
        if mark != close:
            raise self.fault(f"expected ',' or {close!r}", at)
        return at

    def line_end(self, at: int) -> int:
        """Return where the next line begins; there may only be a comment before."""
        found = re.compile(r"[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)").match(self.text, at)
        if found is None:
            raise self.fault("more than one thing on a line", at)
        return found.end()


def _text(written: str) -> str:
    """Return what a quoted text says."""
    long = written[:3] in ('"""', "'''") and len(written) >= 6
    inner = written[3:-3] if long else written[1:-1]
    if long:
        inner = inner.removeprefix("\r").removeprefix("\n")
    if written[0] == "'" or "\\" not in inner:
        return inner
    import json

    joined = re.sub(r"\\[ \t]*\r?\n\s*", "", inner)
    try:
        return str(json.loads('"' + joined.replace("\n", "\\n").replace("\t", "\\t") + '"'))
    except ValueError:
        return joined


def load(text: str) -> Document:
    """Scan a text; SyntaxFault with its place where it is no TOML."""
    scan = _Scanner(text)
    tables = [Table((), 0)]
    entries: list[Entry] = []
    counts: dict[tuple[str, ...], int] = {}
    at = scan.skip(0)
    while at < len(text):
        if text[at] == "[":
            several = text.startswith("[[", at)
            names, last = scan.names(at + 1 + several)
            close = scan.inline(last[1])
            if not text.startswith("]]" if several else "]", close):
                raise scan.fault("a table's name without its closing bracket", close)
            path = _numbered(names, counts)
            if several:
                number = counts.get(path, -1) + 1
                counts[path] = number
                path = (*path, str(number))
            tables.append(Table(path, scan.line_end(close + 1 + several)))
            at = scan.skip(tables[-1].body)
            continue
        names, last = scan.names(at)
        equals = scan.inline(last[1])
        if text[equals : equals + 1] != "=":
            raise scan.fault("expected '=' behind the key", equals)
        value = scan.value(scan.inline(equals + 1), 0)
        entries.append(Entry((*tables[-1].path, *names), len(tables) - 1, at, last, value))
        at = scan.skip(scan.line_end(value.end))
    return Document(tuple(tables), tuple(entries))


def _numbered(names: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> tuple[str, ...]:
    """Put the number of the current table of a list behind each name that is such a list."""
    path: tuple[str, ...] = ()
    for i, name in enumerate(names):
        path = (*path, name)
        if path in counts and i < len(names) - 1:
            path = (*path, str(counts[path]))
    return path
