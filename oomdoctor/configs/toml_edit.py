"""Sets, takes out and renames keys of a TOML text in place; every other byte stays.

[training]
seq_len = 8192  # tokens      ->  seq_len = 4096  # tokens
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from oomdoctor.configs import change, toml_scan
from oomdoctor.configs.difference import nested, same
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted
    from oomdoctor.configs.toml_scan import Document, Node


class Found(NamedTuple):
    """A key: its start, the span of its last name, its value, the inline table around it."""

    start: int
    last: tuple[int, int]
    value: Node
    holder: Node | None


def edit(text: str, wanted: Wanted) -> str:
    """Return the text with all wanted changes; SyntaxFault where it is no TOML."""
    for key, value in wanted.items():
        text = _change(text, key, value)
    return text


def whole(text: str) -> object:
    """Return all settings by dotted key, below the first name of each."""
    made: dict[str, list[object]] = {}
    for entry in toml_scan.load(text).entries:
        made.setdefault(entry.path[0], []).append((entry.path, plain(entry.value)))
    return made


def held(text: str, key: str) -> tuple[bool, object]:
    """Return whether a dotted key is there, and its value."""
    found = _find(toml_scan.load(text), tuple(key.split(".")))
    return (False, None) if found is None else (True, plain(found.value))


def plain(node: Node) -> object:
    """Return a node's value as Python has it."""
    if node.kind == "map":
        made: dict[str, object] = {}
        for pair in node.pairs:
            made[".".join(pair.names)] = plain(pair.value)
        return made
    return [plain(item) for item in node.items] if node.kind == "list" else node.value


def _find(document: Document, path: tuple[str, ...]) -> Found | None:
    for entry in reversed(document.entries):
        if entry.path == path:
            return Found(entry.start, entry.last, entry.value, None)
        if path[: len(entry.path)] == entry.path and entry.value.kind == "map":
            found = _inside(entry.value, path[len(entry.path) :])
            if found is not None:
                return found
    return None


def _inside(holder: Node, names: tuple[str, ...]) -> Found | None:
    for pair in holder.pairs:
        if pair.names == names:
            return Found(pair.start, pair.last, pair.value, holder)
        if names[: len(pair.names)] == pair.names and pair.value.kind == "map":
            return _inside(pair.value, names[len(pair.names) :])
    return None


def _change(text: str, key: str, value: object) -> str:
    path = tuple(key.split("."))
    document = toml_scan.load(text)
    found = _find(document, path)
    name = change.new_name(value)
    if change.removes(value):
        return text if found is None else _without(text, found)
    if name is not None:
        return text if found is None else _renamed(text, document, path, name)
    if found is None:
        return _insert(text, document, path, value)
    if same(plain(found.value), value):
        return text
    written = literal(value, old=text[found.value.start])
    return text[: found.value.start] + written + text[found.value.end :]


def _renamed(text: str, document: Document, path: tuple[str, ...], name: str) -> str:
    found, other = _find(document, path), _find(document, (*path[:-1], name))
    if found is None:
        return text
    if other is not None:
        if not same(plain(other.value), plain(found.value)):
            message = f"{path[-1]} and {name} are both there with different values"
            raise ValueError(message)
        return _without(text, found)
    return text[: found.last[0]] + name + text[found.last[1] :]


def _without(text: str, found: Found) -> str:
    if found.holder is None:
        row = text.rfind("\n", 0, found.start) + 1
        end = text.find("\n", found.value.end)
        return text[:row] + (text[end + 1 :] if end >= 0 else "")
    behind = re.compile(r"\s*,[ \t]*").match(text, found.value.end)
    if behind is not None:
        return text[: found.start] + text[behind.end() :]
    before = re.compile(r"\s*,\s*\Z|\s+\Z").search(text[: found.start])
    return text[: before.start() if before else found.start] + text[found.value.end :]


def _insert(text: str, document: Document, path: tuple[str, ...], value: object) -> str:
    """Add a key: to the inline table or the table that is there, or in a table of its own."""
    for entry in document.entries:
        if path[: len(entry.path)] == entry.path and entry.value.kind == "map":
            return _into_inline(text, entry.value, path[len(entry.path) :], value)
        if path[: len(entry.path)] == entry.path:
            written = literal(nested(list(path[len(entry.path) :]), value))
            return text[: entry.value.start] + written + text[entry.value.end :]
    tables = [i for i, table in enumerate(document.tables) if path[: len(table.path)] == table.path]
    at = max(tables, key=lambda i: (len(document.tables[i].path), i))
    rest = path[len(document.tables[at].path) :]
    if len(rest) > 1 and at == 0:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        written = f"[{'.'.join(rest[:-1])}]\n{rest[-1]} = {literal(value)}\n"
        return text + (gap + written).replace("\n", "\r\n" if "\r\n" in text else "\n")
    return _into_table(text, document, at, f"{'.'.join(rest)} = {literal(value)}")


def _into_table(text: str, document: Document, at: int, written: str) -> str:
    """Write a line behind the last one of a table, with its indentation and its line end."""
    own = [entry for entry in document.entries if entry.table == at]
    if not own:
        place = document.tables[at].body
        ended = "\r\n" if text[:place].endswith("\r\n") else "\n"
        gap = "" if place == 0 or text[:place].endswith("\n") else ended
        return f"{text[:place]}{gap}{written}{ended}{text[place:]}"
    last = own[-1]
    row = text.rfind("\n", 0, last.start) + 1
    end = text.find("\n", last.value.end)
    lead = text[row : last.start]
    ended = "\r\n" if "\r\n" in text else "\n"
    if end < 0:
        return f"{text}{ended}{lead}{written}"
    return f"{text[: end + 1]}{lead}{written}{ended}{text[end + 1 :]}"


def _into_inline(text: str, node: Node, names: tuple[str, ...], value: object) -> str:
    written = f"{'.'.join(names)} = {literal(value)}"
    if not node.pairs:
        return f"{text[: node.start]}{{ {written} }}{text[node.end :]}"
    end = node.pairs[-1].value.end
    return f"{text[:end]}, {written}{text[end:]}"


def literal(value: object, *, old: str = "") -> str:
    """Write a value; `old` is the first character of what stood there."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{name} = {literal(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if value is None:
        message = "TOML has no null"
        raise ValueError(message)
    said = str(value)
    plain_text = said.isprintable() and "'" not in said
    return f"'{said}'" if old == "'" and plain_text else json.dumps(said, ensure_ascii=False)
