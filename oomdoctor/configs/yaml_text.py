"""YAML as settings with places: parser events only, no objects, no tags, bounded in every way.

base_model: NousResearch/Llama-3.2-1B   # quoted from the value's first column
datasets: [{path: tatsu-lab/alpaca}]     # path ("datasets", "0", "path")
<<: *defaults                            # merge keys and aliases are followed, within a limit
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.configs import scalars
from oomdoctor.configs.setting import Setting, SyntaxFault, TooMuch
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from yaml import MarkedYAMLError

    from oomdoctor.configs.setting import Lines, Plain, Scalar
    from oomdoctor.model.core import Quote

if TYPE_CHECKING:

    class _Mark(Protocol):
        line: int
        column: int

    class _Event(Protocol):
        """What PyYAML's events say; a kind of event is asked for its own parts alone."""

        start_mark: _Mark
        end_mark: _Mark
        anchor: str
        style: str | None
        value: str


Place: TypeAlias = tuple[int, int, int, int]
"""First line and column of a node, and its last ones."""

MAX_EVENTS = 200_000
MAX_SETTINGS = 20_000
MAX_DEPTH = scalars.MAX_NESTING


class Node:
    """A node of a document: `pairs` for mappings (key, value), `items` for sequences.

    It is built while events come in, so that its end is known only when its last event is.
    """

    __slots__ = (
        *("kind", "line", "column", "end_line", "end_column"),
        *("text", "plain", "items", "pairs"),
    )

    def __init__(self, kind: str, place: Place, *, text: str = "", plain: bool = False) -> None:
        """Start a node of a kind at a place, without members."""
        self.kind = kind
        self.line, self.column, self.end_line, self.end_column = place
        self.text = text
        self.plain = plain
        self.items: list[Node] | None = [] if kind == "list" else None
        self.pairs: list[tuple[Node, Node]] | None = [] if kind == "map" else None


class Read(NamedTuple):
    """The settings of a YAML text, and what a reader should be told about it."""

    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
    is_mapping: bool


def read(lines: Lines) -> Read:
    """Read all documents of a text; a SyntaxFault names the place where it is no YAML."""
    notes: list[str] = []
    rows: list[Setting] = []
    documents = load(lines.text, first=lines.rows[0][0] if lines.rows else 1, notes=notes)
    for document in documents:
        for row in _settings(document, lines):
            rows.append(row)
            if len(rows) > MAX_SETTINGS:
                message = f"more than {MAX_SETTINGS} settings once its aliases are expanded"
                raise TooMuch(message, line=row.quote.line, column=row.quote.column)
    mapping = bool(documents) and all(d.kind == "map" for d in documents)
    return Read(tuple(rows), tuple(notes), mapping)


def load(text: str, *, first: int = 1, notes: list[str] | None = None) -> list[Node]:
    """Build the node trees of a text from parser events; line numbers count from `first`."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    notes = notes if notes is not None else []
    build = _Builder(first, notes)
    text = _readable(text, first=first, notes=notes)
    try:
        events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        for number, event in enumerate(events):
            build.take(event)
            if number > MAX_EVENTS:
                message = f"more than {MAX_EVENTS} nodes"
                raise TooMuch(message, line=build.line(event), column=1)
    except yaml.MarkedYAMLError as fault:
        raise _fault(fault, text, first) from None
    return build.documents


@cache
def _forbidden() -> re.Pattern[str]:
    """Match what no YAML may hold: control characters, halves of surrogate pairs."""
    return re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def _readable(text: str, *, first: int, notes: list[str]) -> str:
    """Put blanks in the place of characters that YAML forbids, so that the rest can be read."""
    found = _forbidden().search(text)
    if found is None:
        return text
    at = found.start()
    line, column = first + text.count("\n", 0, at), at - text.rfind("\n", 0, at)
    notes.append(
        f"line {line}, column {column}: the character U+{ord(text[at]):04X} may not stand in YAML,"
        " read as a blank; the program that is given this file will refuse it"
    )
    return _forbidden().sub(" ", text)


def _fault(fault: MarkedYAMLError, text: str, first: int) -> SyntaxFault:
    mark = fault.problem_mark or fault.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    rows = text.split("\n")
    row = rows[line] if line < len(rows) else ""
    message = str(fault.problem or fault.context or "not readable as YAML")
    if "\t" in row[: column + 1]:
        column = row.index("\t")
        message = "a tab where YAML wants spaces"
    return SyntaxFault(message, line=first + line, column=column + 1)


class _Builder:
    """Turns parser events into nodes, keeping a stack of open collections."""

    def __init__(self, first: int, notes: list[str]) -> None:
        self.first = first
        self.notes = notes
        self.documents: list[Node] = []
        self._open: list[Node] = []
        self._keys: list[Node | None] = []
        self._anchors: dict[str, Node] = {}

    def line(self, event: _Event) -> int:
        """Return the physical line of an event."""
        return self.first + int(event.start_mark.line)

    def take(self, event: _Event) -> None:
        """Take the next event."""
        name = type(event).__name__
        if name in ("MappingEndEvent", "SequenceEndEvent"):
            node = self._open.pop()
            self._keys.pop()
            node.end_line = self.first + int(event.end_mark.line)
            node.end_column = int(event.end_mark.column)
        elif name == "DocumentStartEvent":
            self._anchors = {}
        elif name == "AliasEvent":
            named = self._anchors.get(event.anchor)
            if named is None:
                message = f"undefined alias *{event.anchor}"
                column = event.start_mark.column + 1
                raise SyntaxFault(message, line=self.line(event), column=column)
            self._attach(named)
        elif name in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
            self._node(event, name)

    def _node(self, event: _Event, name: str) -> None:
        start, end = event.start_mark, event.end_mark
        place = (self.first + start.line, start.column, self.first + end.line, end.column)
        if name == "ScalarEvent":
            plain = event.style in (None, "")
            node = Node("scalar", place, text=event.value, plain=plain)
        elif name == "MappingStartEvent":
            node = Node("map", place)
        else:
            node = Node("list", place)
        if event.anchor:
            self._anchors[event.anchor] = node
        self._attach(node)
        if name != "ScalarEvent":
            self._open.append(node)
            self._keys.append(None)
            if len(self._open) > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels"
                raise TooMuch(message, line=node.line, column=node.column + 1)

    def _attach(self, node: Node) -> None:
        if not self._open:
            self.documents.append(node)
            return
        parent = self._open[-1]
        if parent.items is not None:
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            self._keys[-1] = node
            return
        self._keys[-1] = None
        if parent.pairs is not None:
            self._warn_twice(parent.pairs, key)
            parent.pairs.append((key, node))

    def _warn_twice(self, pairs: list[tuple[Node, Node]], key: Node) -> None:
        if key.text == "<<" or len(pairs) > 2000:
            return
        for other, _ in pairs:
            if other.kind == "scalar" and other.text == key.text and key.kind == "scalar":
                self.notes.append(
                    f"{key.text!r} is given twice, in line {other.line} and line {key.line}:"
                    " the last one is in force"
                )
                return


def _settings(document: Node, lines: Lines) -> Iterator[Setting]:
    """Walk a document depth first; aliases make it a graph, so the depth is bounded."""
    stack: list[tuple[Node, tuple[str, ...]]] = [(document, ())]
    visits = 0
    while stack:
        node, path = stack.pop()
        visits += 1
        if len(path) > MAX_DEPTH or visits > 10 * MAX_SETTINGS:
            message = "aliases expand without end"
            raise TooMuch(message, line=node.line, column=node.column + 1)
        if node.kind == "scalar":
            yield Setting(path, scalar(node), quote(node, lines))
        elif node.items is not None:
            if all(item.kind == "scalar" for item in node.items):
                values: Plain = tuple(scalar(item) for item in node.items)
                yield Setting(path, values, quote(node, lines))
            else:
                children = [(item, (*path, str(i))) for i, item in enumerate(node.items)]
                stack.extend(reversed(children))
        elif node.pairs is not None:
            stack.extend(reversed(_children(node.pairs, path)))
            if not node.pairs:
                yield Setting(path, (), quote(node, lines))


def _children(
    pairs: list[tuple[Node, Node]], path: tuple[str, ...]
) -> list[tuple[Node, tuple[str, ...]]]:
    merged: list[tuple[Node, tuple[str, ...]]] = []
    own: list[tuple[Node, tuple[str, ...]]] = []
    for key, value in pairs:
        if key.text == "<<" and key.plain and value.kind in ("map", "list"):
            sources = [value] if value.kind == "map" else list(value.items or ())
            for source in sources:
                merged += [(v, (*path, k.text)) for k, v in source.pairs or () if k.text != "<<"]
        else:
            own.append((value, (*path, key.text or "?")))
    names = {where for _, where in own}
    return [*(row for row in merged if row[1] not in names), *own]


def scalar(node: Node) -> Scalar:
    """Return the value of a scalar node; quoted ones are text."""
    return scalars.scalar_of(node.text) if node.plain else node.text


def quote(node: Node, lines: Lines) -> Quote:
    """Quote a node's text in its first line."""
    first = lines.rows[0][0]
    row = node.line - first
    if node.end_line == node.line and node.kind == "scalar":
        return lines.quote(row, node.column, node.end_column)
    if node.kind == "list" and row < len(lines.rows):
        end = _flow_end(lines.rows[row][1], node.column)
        return lines.quote(row, node.column, end)
    return lines.quote(row, node.column)


def _flow_end(row: str, start: int) -> int | None:
    """Find where a list in brackets ends in its line."""
    if row[start : start + 1] != "[":
        return None
    end = row.find("]", start)
    return end + 1 if end >= 0 else None
