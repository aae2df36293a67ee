"""A config.json as one JSON text again, out of the settings that it was read into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oomdoctor.configs.setting import Plain, Settings

LONGEST = 100_000
"""Characters of a config; a longer one (a classifier of many classes) goes without its labels."""
LABELS = ("id2label", "label2id")


def json_of(settings: Settings) -> str:
    """Return the settings as JSON; the names of labels only as their number."""
    tree: dict[str, Any] = {}
    labels = 0
    for row in settings.in_force:
        if row.path[0] in LABELS:
            labels += row.path[0] == LABELS[0]
            continue
        _put(tree, row.path, _plain(row.value))
    if labels:
        tree.setdefault("num_labels", labels)
    return json.dumps(_lists(tree), separators=(",", ":"))[:LONGEST]


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for part in path[:-1]:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            inner = tree[part] = {}
        tree = inner
    tree[path[-1]] = value


def _plain(value: Plain) -> object:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _lists(value: object) -> object:
    """Turn mappings with the keys 0, 1, ... into lists."""
    if not isinstance(value, dict):
        return value
    inner = {key: _lists(one) for key, one in value.items()}
    if inner and list(inner) == [str(number) for number in range(len(inner))]:
        return list(inner.values())
    return inner
