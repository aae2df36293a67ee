"""Sets keys of a JSON text in place, keeping its indentation.

{"zero_optimization": {"stage": 2}}   zero_optimization.stage -> 3
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor.configs import change, json_text
from oomdoctor.configs.difference import nested, same

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted
    from oomdoctor.configs.json_text import Node


def edit(text: str, wanted: Wanted) -> str:
    """Return the text with all wanted changes; SyntaxFault where it is no JSON object."""
    for key, value in wanted.items():
        name = change.new_name(value)
        if change.removes(value):
            text = _remove(text, key)
        elif name is not None:
            text = _rename(text, key, name)
        else:
            text = _set(text, key, value)
    return text


def whole(text: str) -> object:
    """Return all settings of the object."""
    return plain(json_text.load(text, strict=False)[0])


def held(text: str, key: str) -> tuple[bool, object]:
    """Return whether a dotted key is there, and its value."""
    node, _ = json_text.load(text, strict=False)
    names = [key] if node.child(key) else key.split(".")
    for name in names:
        child = node.child(name)
        if child is None:
            return False, None
        node = child
    return True, plain(node)


def plain(node: Node) -> object:
    """Return a node's value as Python has it."""
    if node.kind == "map":
        return {name: plain(value) for name, _, value in node.pairs}
    return [plain(item) for item in node.items] if node.kind == "list" else node.value


def _set(text: str, key: str, value: object) -> str:
    node, _ = json_text.load(text, strict=False)
    names = [key] if node.child(key) else key.split(".")
    while names:
        child = node.child(names[0])
        if child is None:
            return _insert(text, node, names[0], nested(names[1:], value))
        if len(names) == 1:
            if same(plain(child), value):
                return text
            return text[: child.start] + _written(value, text, child) + text[child.end :]
        if child.kind != "map":
            new = _written(nested(names[1:], value), text, child)
            return text[: child.start] + new + text[child.end :]
        names, node = names[1:], child
    return text


def _holder(text: str, key: str) -> tuple[Node, str] | None:
    """Return the object that holds a dotted key, and the key's last part; None without it."""
    node, _ = json_text.load(text, strict=False)
    names = [key] if node.child(key) else key.split(".")
    for name in names[:-1]:
        child = node.child(name)
        if child is None:
            return None
        node = child
    return None if node.child(names[-1]) is None else (node, names[-1])


def _remove(text: str, key: str) -> str:
    """Take a key out with its comma; a key on lines of its own takes them along."""
    found = _holder(text, key)
    if found is None:
        return text
    node, name = found
    at = max(i for i, (other, _, _) in enumerate(node.pairs) if other == name)
    _, start, value = node.pairs[at]
    if len(node.pairs) == 1:
        return f"{text[: node.start]}{{}}{text[node.end :]}"
    if at == len(node.pairs) - 1:
        return text[: node.pairs[at - 1][2].end] + text[value.end :]
    return text[:start] + text[node.pairs[at + 1][1] :]


def _rename(text: str, key: str, name: str) -> str:
    found = _holder(text, key)
    if found is None:
        return text
    node, old = found
    there = node.child(name)
    if there is not None:
        held_value = node.child(old)
        if held_value is None or not same(plain(there), plain(held_value)):
            message = f"{old} and {name} are both there with different values"
            raise ValueError(message)
        return _remove(text, key)
    start = next(start for other, start, _ in reversed(node.pairs) if other == old)
    end = json_text.end_of_text(text, start)
    return text[:start] + json.dumps(name) + text[end:]


def _written(value: object, text: str, near: Node) -> str:
    """Write a value; a mapping is indented like the lines around it where the text has lines."""
    if not isinstance(value, dict) or "\n" not in text:
        return json.dumps(value)
    line = text[text.rfind("\n", 0, near.start) + 1 : near.start]
    lead = line[: len(line) - len(line.lstrip())]
    block = json.dumps(value, indent=step(text))
    return block.replace("\n", "\n" + lead)


def _insert(text: str, node: Node, name: str, value: object) -> str:
    """Add a key behind the last one of an object."""
    written = f"{json.dumps(name)}: "
    if not node.pairs:
        return (
            text[: node.start]
            + "{"
            + written
            + _written(value, text, node)
            + "}"
            + text[node.end :]
        )
    _, key_start, last = node.pairs[-1]
    before = text[: last.end]
    row_start = text.rfind("\n", 0, key_start)
    lead = text[row_start + 1 : key_start]
    own_line = row_start >= node.start and not lead.strip()
    if own_line:
        line_end = "\r\n" if row_start > 0 and text[row_start - 1] == "\r" else "\n"
        block = json.dumps(value, indent=step(text)).replace("\n", line_end + lead)
        return f"{before},{line_end}{lead}{written}{block}{text[last.end :]}"
    return f"{before}, {written}{json.dumps(value)}{text[last.end :]}"


def step(text: str) -> int | str:
    """Return the indentation that a text uses: a number of blanks, or a tab."""
    for row in text.split("\n")[1:]:
        lead = row[: len(row) - len(row.lstrip())]
        if lead and row.strip():
            return "\t" if lead[0] == "\t" else len(lead)
    return 2
