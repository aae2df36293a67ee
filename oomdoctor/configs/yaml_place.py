"""Where the keys of a YAML text stand: what setting, taking out and renaming them share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import yaml_text

if TYPE_CHECKING:
    from oomdoctor.configs.yaml_text import Node


def root(text: str) -> Node | None:
    """Return the first document that is a mapping."""
    documents = yaml_text.load(text)
    return next((document for document in documents if document.pairs is not None), None)


def walk(start: Node, key: str) -> tuple[list[str], Node | None]:
    """Follow a dotted key as far as it goes: the names that are left, and the last node."""
    whole = pair(start, key)
    if whole is not None:
        return [], whole[1]
    names, node = key.split("."), start
    while names:
        found = pair(node, names[0])
        if found is None:
            break
        names, node = names[1:], found[1]
    return names, node


def pair(node: Node, name: str) -> tuple[Node, Node] | None:
    """Return key and value of a name, the last one where it stands twice."""
    pairs = [pair for pair in node.pairs or () if pair[0].text == name]
    return pairs[-1] if pairs else None


def is_flow(rows: list[str], node: Node) -> bool:
    """Say whether a mapping is written in braces."""
    return rows[node.line - 1][node.column : node.column + 1] == "{"


def is_alias(rows: list[str], key: Node) -> bool:
    """Say whether the value of a key is an alias."""
    return rows[key.end_line - 1][key.end_column :].lstrip(" :").startswith("*")


def block_end(rows: list[str], key: Node) -> int:
    """Return the last row (0-based) that belongs to a key of a block mapping."""
    end = row = key.line - 1
    for at in range(row + 1, len(rows)):
        line = rows[at].rstrip("\r")
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        item = text == "-" or text.startswith("- ")
        closes = text[0] in "]}" and indent >= key.column
        if indent > key.column or (item and indent == key.column) or closes:
            end = at
        else:
            break
    return end
