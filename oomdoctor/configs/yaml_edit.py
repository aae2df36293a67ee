"""Sets keys of a YAML text by the smallest edit: comments, order, quotes and anchors survive.

gradient_checkpointing: false  # saves memory      ->  gradient_checkpointing: true  # saves ...
activation_checkpointing_kwargs.use_reentrant      a dotted key goes into nested mappings
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from oomdoctor.configs import change, scalars, yaml_cut, yaml_place, yaml_text
from oomdoctor.configs.difference import nested, same

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted
    from oomdoctor.configs.yaml_text import Node


def edit(text: str, wanted: Wanted) -> str:
    """Return the text with all wanted changes; SyntaxFault where it is no YAML mapping."""
    for key, value in wanted.items():
        name = change.new_name(value)
        if change.removes(value):
            text = yaml_cut.remove(text, key)
        elif name is not None:
            text = yaml_cut.rename(text, key, name, plain)
        else:
            text = _set(text, key, value)
    return text


def whole(text: str) -> object:
    """Return all settings of the mapping that is edited."""
    root = yaml_place.root(text)
    return {} if root is None else plain(root)


def held(text: str, key: str) -> tuple[bool, object]:
    """Return whether a dotted key is there, and its value."""
    root = yaml_place.root(text)
    names, node = yaml_place.walk(root, key) if root is not None else ([key], None)
    if node is None or names:
        return False, None
    return True, plain(node)


def plain(node: Node) -> object:
    """Return a node's value as Python has it."""
    if node.items is not None:
        return [plain(item) for item in node.items]
    if node.pairs is not None:
        return {key.text: plain(value) for key, value in node.pairs}
    if node.plain and node.text.lower() == "none":  # a word for YAML, null only for readers
        return node.text
    return yaml_text.scalar(node)


def _set(text: str, key: str, value: object) -> str:
    root = yaml_place.root(text)
    if root is None:
        return (
            text.rstrip("\n")
            + ("\n" if text.strip() else "")
            + _block(nested(key.split("."), value), 0)
        )
    names = [key] if yaml_place.pair(root, key) is not None else key.split(".")
    node = root
    rows = text.split("\n")
    in_flow = False
    while names:
        in_flow = in_flow or yaml_place.is_flow(rows, node)
        pair = yaml_place.pair(node, names[0])
        if pair is None:
            return "\n".join(_insert(rows, node, names[0], nested(names[1:], value)))
        if len(names) == 1 or pair[1].pairs is None:
            new = nested(names[1:], value)
            if len(names) == 1 and same(plain(pair[1]), value):
                return text
            return "\n".join(_replace(rows, pair, new, root, in_flow=in_flow))
        if yaml_place.is_alias(rows, pair[0]):
            message = f"{names[0]} is an alias: the edit would change its anchor too"
            raise ValueError(message)
        names, node = names[1:], pair[1]
    return text


def _replace(
    rows: list[str], pair: tuple[Node, Node], value: object, root: Node, *, in_flow: bool
) -> list[str]:
    """Put a new value behind a key, in place of the one that stands there."""
    key, old = pair
    row = key.end_line - 1
    line = rows[row]
    colon = line.index(":", key.end_column)
    rest = line[colon + 1 :]
    lead = re.match(r"\s*(?:[&!]\S+\s+)*", rest)
    start = colon + 1 + (lead.end() if lead else 0)
    inline = old.kind == "scalar" or rest.strip()[:1] in ("*", "{", "[")
    style = _style(rows)
    if re.search(r"&\S+", lead.group() if lead else "") and isinstance(value, dict):
        message = f"{key.text} is an anchor that others refer to"
        raise ValueError(message)
    if isinstance(value, dict) and not in_flow:
        end = yaml_place.block_end(rows, key)
        written = _block(value, key.column + _step(root), style=style).split("\n")
        tail = _ended([part for part in written if part], line)
        comment = re.search(r"\s#.*$", line) if old.kind == "scalar" else None
        head = line[: colon + 1] + (comment.group().rstrip("\r") if comment else "")
        return [*rows[:row], *_ended([head], line), *tail, *rows[end + 1 :]]
    if not inline:
        end = yaml_place.block_end(rows, key)
        new = f"{line[: colon + 1]} {scalar_text(value, style=style)}"
        return [*rows[:row], *_ended([new], line), *rows[end + 1 :]]
    return _replace_inline(
        rows, (row, start), old, scalar_text(value, old=_raw(line, start), style=style)
    )


def _replace_inline(rows: list[str], place: tuple[int, int], old: Node, new: str) -> list[str]:
    row, start = place
    line = rows[row]
    alias = re.match(r"\*\S+", line[start:])
    if alias:
        return [*rows[:row], line[:start] + new + line[start + alias.end() :], *rows[row + 1 :]]
    if old.kind == "scalar" and not old.text and old.plain:  # `key:` with nothing behind it
        at = len(line[:start].rstrip())
        return [*rows[:row], f"{line[:at]} {new}{_gap(line[at:])}", *rows[row + 1 :]]
    last, column = old.end_line - 1, old.end_column
    if last > row and not rows[last][:column].strip():  # a block scalar ends where the next begins
        while last > row and not rows[last][:column].strip():
            last -= 1
            column = len(rows[last].rstrip("\r"))
    return [*rows[:row], line[:start] + new + rows[last][column:], *rows[last + 1 :]]


def _gap(rest: str) -> str:
    """Return what follows an empty value with a blank before a comment."""
    return f" {rest.lstrip()}" if rest.strip() else rest.strip(" ")


def _raw(line: str, start: int) -> str:
    return line[start : start + 1]


def _insert(rows: list[str], node: Node, name: str, value: object) -> list[str]:
    """Add a key to a mapping: behind its nearest relative, or at the end."""
    pairs = node.pairs or []
    if yaml_place.is_flow(rows, node) or not pairs:
        row, column = node.end_line - 1, node.end_column - 1
        line = rows[row]
        inside = line[:column].rstrip()
        lead = "" if inside.endswith("{") else ", " if not inside.endswith(",") else " "
        new = f"{inside}{lead}{name}: {scalar_text(value)}{line[column:]}"
        return [*rows[:row], new, *rows[row + 1 :]]
    key = _relative(pairs, name)
    end = yaml_place.block_end(rows, key)
    written = _block({name: value}, key.column, style=_style(rows), step=_step(node))
    new_rows = _ended([part for part in written.split("\n") if part], rows[end])
    if end == len(rows) - 1:  # the file has no line end at its end: give it one
        return [*rows[: end + 1], *new_rows, ""]
    return [*rows[: end + 1], *new_rows, *rows[end + 1 :]]


def _relative(pairs: list[tuple[Node, Node]], name: str) -> Node:
    """Choose the key behind which a new one reads well: the one that shares most of its start."""
    words = name.split("_")
    best, score = pairs[-1][0], 0
    for key, _ in pairs:
        others = key.text.split("_")
        shared = len(set(words) & set(others)) + (words[0] == others[0])
        if shared > score or (shared == score and shared):
            best, score = key, shared
    return best


def _ended(new: list[str], like: str) -> list[str]:
    """Give new lines the carriage return that their neighbour has."""
    return [f"{row}\r" for row in new] if like.endswith("\r") else new


def _step(node: Node) -> int:
    """Return by how many columns this file indents."""
    for key, value in node.pairs or ():
        if value.pairs and value.line > key.line and value.column > key.column:
            return value.column - key.column
    return 2


def _style(rows: list[str]) -> bool:
    """Say whether the file writes `True` with a capital letter."""
    capital = sum(row.rstrip().endswith((": True", ": False")) for row in rows)
    small = sum(row.rstrip().endswith((": true", ": false")) for row in rows)
    return capital > small


def _block(value: object, indent: int, *, style: bool = False, step: int = 2) -> str:
    """Write a mapping in block style."""
    if not isinstance(value, dict):
        return scalar_text(value, style=style)
    text = ""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            text += f"{' ' * indent}{name}:\n" + _block(
                inner, indent + step, style=style, step=step
            )
        else:
            text += f"{' ' * indent}{name}: {scalar_text(inner, style=style)}\n"
    return text


def scalar_text(value: object, *, old: str = "", style: bool = False) -> str:
    """Write a value so that it is read back as what it is; `old` is the quote that stood there."""
    if isinstance(value, bool):
        word = "true" if value else "false"
        return word.capitalize() if style else word
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        text = repr(value)  # without a point, 1e-05 would be read as a text
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(scalar_text(item) for item in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{name}: {scalar_text(item)}" for name, item in value.items())
        return "{" + inner + "}"
    return _string(str(value), old)


def _string(text: str, old: str) -> str:
    simple = re.fullmatch(r"[A-Za-z0-9_./][A-Za-z0-9_./ +=@-]*(?::[A-Za-z0-9_./]+)*", text)
    if (
        simple
        and scalars.scalar_of(text) == text
        and old not in ("'", '"')
        and text == text.strip()
    ):
        return text
    if old == "'" or (old != '"' and "'" not in text):
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
