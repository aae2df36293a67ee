"""Takes keys out of a YAML text and renames them; every other byte stays.

{a: 1, b: 2}        without a:   {b: 2}
- path: x           without path:   - type: y
  type: y
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.configs import yaml_place
from oomdoctor.configs.difference import same

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.configs.yaml_text import Node


def remove(text: str, key: str) -> str:
    """Return the text without a dotted key; unchanged where it is not there."""
    found = _found(text, key)
    if found is None:
        return text
    rows = text.split("\n")
    holder, (name, _), above = found
    if yaml_place.is_flow(rows, holder):
        return _from_flow(text, rows, holder, name)
    row, end = name.line - 1, yaml_place.block_end(rows, name)
    pairs = holder.pairs or []
    front = rows[row][: name.column]
    if len(pairs) == 1:
        return "\n".join(_emptied(rows, (row, end), name, above))
    if front.strip():  # behind the dash of a list: the next key takes its place
        follower = pairs[1][0]
        if pairs[0][0] is not name:
            message = f"{name.text} shares its line with another key"
            raise ValueError(message)
        at = follower.line - 1
        return "\n".join(
            [*rows[:row], front + rows[at][follower.column :], *rows[end + 1 : at], *rows[at + 1 :]]
        )
    return "\n".join([*rows[:row], *rows[end + 1 :]])


def rename(text: str, key: str, name: str, plain: Callable[[Node], object]) -> str:
    """Return the text with the last part of a dotted key written as `name`."""
    found = _found(text, key)
    if found is None:
        return text
    holder, (old, value), _ = found
    other = yaml_place.pair(holder, name)
    if other is not None:
        if not same(plain(other[1]), plain(value)):
            message = f"{old.text} and {name} are both there with different values"
            raise ValueError(message)
        return remove(text, key)
    rows = text.split("\n")
    line = rows[old.line - 1]
    written = line[old.column : old.end_column]
    mark = written[0] if written[:1] in ("'", '"') else ""
    rows[old.line - 1] = line[: old.column] + mark + name + mark + line[old.end_column :]
    return "\n".join(rows)


def _found(text: str, key: str) -> tuple[Node, tuple[Node, Node], Node | None] | None:
    """Return the mapping that holds a key, the pair itself, and the key above the mapping."""
    node = yaml_place.root(text)
    if node is None:
        return None
    names = [key] if yaml_place.pair(node, key) is not None else key.split(".")
    rows = text.split("\n")
    above: Node | None = None
    while True:
        pair = yaml_place.pair(node, names[0])
        if pair is None:
            _refuse_merged(node, names[0])
            return None
        if len(names) == 1:
            return node, pair, above
        if yaml_place.is_alias(rows, pair[0]):
            message = f"{names[0]} is an alias: the edit would change its anchor too"
            raise ValueError(message)
        above, node, names = pair[0], pair[1], names[1:]


def _refuse_merged(node: Node, name: str) -> None:
    """Fail where a key comes from a mapping that is merged in, for others use that one too."""
    merged = yaml_place.pair(node, "<<")
    sources = [] if merged is None else [merged[1], *(merged[1].items or ())]
    if any(yaml_place.pair(source, name) is not None for source in sources):
        message = f"{name} comes from a mapping that is merged in"
        raise ValueError(message)


def _emptied(rows: list[str], span: tuple[int, int], name: Node, above: Node | None) -> list[str]:
    """Take the only key of a mapping out, and leave an empty one behind the key above."""
    row, end = span
    front = rows[row][: name.column]
    if front.strip():
        ended = "\r" if rows[row].endswith("\r") else ""
        return [*rows[:row], f"{front}{{}}{ended}", *rows[end + 1 :]]
    kept = [*rows[:row], *rows[end + 1 :]]
    if above is not None:
        line = kept[above.end_line - 1]
        colon = line.index(":", above.end_column)
        lead = re.match(r"(?:\s*[&!]\S+)*", line[colon + 1 :])
        at = colon + 1 + (lead.end() if lead else 0)
        kept[above.end_line - 1] = f"{line[:at]} {{}}{line[at:]}"
    return kept


def _from_flow(text: str, rows: list[str], holder: Node, name: Node) -> str:
    """Take a pair out of a mapping in braces, with the comma behind or else before it."""
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row) + 1)
    start = starts[name.line - 1] + name.column
    value = next(value for key, value in holder.pairs or () if key is name)
    if yaml_place.is_alias(rows, name):
        alias = re.compile(r"[^*]*\*[^\s,}\]]+").match(text, start)
        end = alias.end() if alias else start
    else:
        end = starts[value.end_line - 1] + value.end_column
    behind = re.compile(r"\s*,[ \t]*").match(text, end)
    before = re.compile(r",\s*\Z").search(text[:start])
    if behind is not None:
        end = behind.end()
    elif before is not None:
        start = before.start()
    head, tail = text[:start], text[end:]
    lead = head[head.rfind("\n") + 1 :]
    whole = re.match(r"[ \t]*\r?\n", tail)
    if "\n" in head and not lead.strip() and whole is not None and behind is not None:
        return head[: len(head) - len(lead)] + tail[whole.end() :]  # it had a line of its own
    return head + tail
