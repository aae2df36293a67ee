"""JSON as nodes with their places, for reading and for editing in place.

    {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}, "fp16": {}}

Comments and trailing commas are accepted only where `strict` is off (text that someone pasted).
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import scalars
from oomdoctor.configs.setting import Setting, SyntaxFault, TooMuch
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Lines, Plain, Scalar

MAX_NODES = 200_000
_SHOWN_DIGITS = 60
MAX_SETTINGS = 20_000
MOST_TOLD = 50


class Node(NamedTuple):
    """A value with its span in the text; `pairs` of objects also hold the key's start."""

    kind: str
    start: int
    end: int
    value: Scalar = None
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[str, int, Node], ...] = ()

    def child(self, key: str) -> Node | None:
        """Return the value of `key`, the last one where it stands twice."""
        return next((node for name, _, node in reversed(self.pairs) if name == key), None)


@cache
def _blank(strict: bool) -> re.Pattern[str]:
    plain = r"[ \t\r\n]*"
    return re.compile(
        plain if strict else r"(?:[ \t\r\n]+|//[^\n]*|\#[^\n]*|/\*.{0,5000}?\*/)*", re.DOTALL
    )


@cache
def _literal() -> re.Pattern[str]:
    text = r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'  # a picture has megabytes: run by run
    return re.compile(text + r"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|-?[A-Za-z]+")


_LOOSE_WORDS = ("True", "False", "None", "NaN", "Infinity", "-Infinity")


class _Parser:
    """A recursive descent over a text, its depth bounded."""

    def __init__(self, text: str, *, strict: bool) -> None:
        self.text = text
        self.strict = strict
        self.nodes = 0
        self.twice: list[tuple[str, int, int]] = []

    def skip(self, at: int) -> int:
        found = _blank(self.strict).match(self.text, at)
        return found.end() if found else at

    def fault(self, message: str, at: int) -> SyntaxFault:
        line = self.text.count("\n", 0, at) + 1
        return SyntaxFault(message, line=line, column=at - self.text.rfind("\n", 0, at))

    def too_much(self, message: str, at: int) -> TooMuch:
        place = self.fault(message, at)
        return TooMuch(message, line=place.line, column=place.column)

    def value(self, at: int, depth: int) -> Node:
        at = self.skip(at)
        self.nodes += 1
        if depth > scalars.MAX_NESTING:
            raise self.too_much(f"nested deeper than {scalars.MAX_NESTING} levels", at)
        if self.nodes > MAX_NODES:
            raise self.too_much(f"more than {MAX_NODES} values", at)
        mark = self.text[at : at + 1]
        if mark == "{":
            return self.mapping(at, depth)
        if mark == "[":
            return self.sequence(at, depth)
        return self.literal(at)

    def literal(self, at: int) -> Node:
        found = _literal().match(self.text, at)
        if found is None:
            seen = self.text[at : at + 1]
            raise self.fault(f"expected a value, found {seen!r}" if seen else "ends too early", at)
        word = found.group()
        if word[0] == '"':
            try:
                text = json.loads(word, strict=False)
            except ValueError:
                raise self.fault("a text with a wrong escape", at) from None
            return Node("text", at, found.end(), str(text))
        known = {"true": True, "false": False, "null": None}
        if word in known:
            return Node("word", at, found.end(), known[word])
        if word[-1].isalpha():
            if self.strict or word not in _LOOSE_WORDS:
                raise self.fault(f"expected a value, found {word!r}", at)
            return Node("word", at, found.end(), scalars.scalar_of(word))
        return Node("number", at, found.end(), _number(word))

    def mapping(self, start: int, depth: int) -> Node:
        pairs: list[tuple[str, int, Node]] = []
        seen: dict[str, int] = {}
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            if pairs:
                at = self.comma(at, "}")
                if self.text[at : at + 1] == "}" and not self.strict:
                    break
            key = self.literal(at)
            if key.kind != "text":
                raise self.fault("expected a key in double quotes", at)
            colon = self.skip(key.end)
            if self.text[colon : colon + 1] != ":":
                raise self.fault("expected ':' behind the key", colon)
            name = str(key.value)
            if name in seen:
                self.twice.append((name, seen[name], at))
            seen[name] = at
            value = self.value(colon + 1, depth + 1)
            pairs.append((name, at, value))
            at = self.skip(value.end)
        return Node("map", start, at + 1, pairs=tuple(pairs))

    def sequence(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            if items:
                at = self.comma(at, "]")
                if self.text[at : at + 1] == "]" and not self.strict:
                    break
            items.append(self.value(at, depth + 1))
            at = self.skip(items[-1].end)
        return Node("list", start, at + 1, items=tuple(items))

    def comma(self, at: int, close: str) -> int:
        if self.text[at : at + 1] != ",":
            raise self.fault(f"expected ',' or {close!r}", at)
        after = self.skip(at + 1)
        if self.strict and self.text[after : after + 1] == close:
            raise self.fault("a comma before the closing bracket", at)
        return after


def load(text: str, *, strict: bool = True) -> tuple[Node, tuple[str, ...]]:
    """Parse one JSON value that fills the text; also return notes about keys given twice."""
    parser = _Parser(text, strict=strict)
    node = parser.value(0, 0)
    rest = parser.skip(node.end)
    if rest < len(text):
        raise parser.fault("more text behind the end of the value", rest)
    notes = [
        f"{name!r} is given twice, in line {text.count(chr(10), 0, one) + 1} and line"
        f" {text.count(chr(10), 0, two) + 1}: the last one is in force"
        for name, one, two in parser.twice[:MOST_TOLD]
    ]
    return node, tuple(notes)


def end_of_value(text: str, start: int) -> int | None:
    """Return where the JSON object that begins at `start` ends; None when none does."""
    try:
        node = _Parser(text, strict=False).value(start, 0)
    except SyntaxFault:
        return None
    return node.end if node.kind in ("map", "list") else None


def end_of_text(text: str, start: int) -> int:
    """Return where the quoted text that begins at `start` ends."""
    found = _literal().match(text, start)
    return found.end() if found else start


def settings_of(node: Node, lines: Lines) -> Iterator[Setting]:
    """Walk a parsed value and quote its leaves; `lines` is the text that was parsed."""
    starts = [0]
    for _, row in lines.rows:
        starts.append(starts[-1] + len(row) + 1)
    for number, setting in enumerate(_walk(node, (), lines, starts)):
        if number >= MAX_SETTINGS:
            message = f"more than {MAX_SETTINGS} settings"
            at = setting.quote
            raise TooMuch(message, line=at.line, column=at.column or 1)
        yield setting


def _walk(node: Node, path: tuple[str, ...], lines: Lines, starts: list[int]) -> Iterator[Setting]:
    from bisect import bisect_right

    row = bisect_right(starts, node.start) - 1
    column = node.start - starts[row]
    if node.kind == "map" and node.pairs:
        for name, _, value in node.pairs:
            yield from _walk(value, (*path, name), lines, starts)
        return
    plain = node.kind != "list" or all(item.kind not in ("map", "list") for item in node.items)
    if not plain:
        for i, item in enumerate(node.items):
            yield from _walk(item, (*path, str(i)), lines, starts)
        return
    listed = node.kind in ("list", "map")
    said: Plain = tuple(item.value for item in node.items) if listed else node.value
    inside = 1 if node.kind == "text" else 0
    width = min(node.end - node.start - inside, len(lines.rows[row][1]) - column)
    yield Setting(path, said, lines.quote(row, column + inside, column + width))


def _number(word: str) -> int | float | str | None:
    """Return a number, one of hundreds of digits as it is written."""
    number = scalars.number_of(word)
    return word if number is None and len(word) > _SHOWN_DIGITS else number
