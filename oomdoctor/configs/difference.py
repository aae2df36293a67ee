"""Unified diffs of a config before and after an edit, and small helpers that all editors share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Wanted: TypeAlias = "Mapping[str, object]"


def unified(before: str, after: str, path: str) -> str:
    """Return the unified diff of a file, with the mark for a missing line end where one misses."""
    from difflib import unified_diff

    name = path.replace(os.sep, "/").lstrip("/")
    old, new = _header(f"a/{name}"), _header(f"b/{name}")
    rows = unified_diff(split_keeping(before), split_keeping(after), old, new, n=3)
    return "".join(
        row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
    )


def _header(name: str) -> str:
    """Write a name so that `patch` and `git apply` read it: quoted, or with a tab to end it."""
    if name.isprintable() and '"' not in name and "\\" not in name:
        return f"{name}\t" if " " in name else name
    return '"' + "".join(_quoted(byte) for byte in os.fsencode(name)) + '"'


def _quoted(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def split_keeping(text: str) -> list[str]:
    """Split at line feeds alone and keep them."""
    rows = text.split("\n")
    kept = [f"{row}\n" for row in rows[:-1]]
    return [*kept, rows[-1]] if rows[-1] else kept


def same(held: object, wanted: object) -> bool:
    """Say whether a config already holds a value; true is not 1, but 1 is 1.0."""
    if isinstance(held, tuple):
        held = list(held)
    if isinstance(wanted, tuple):
        wanted = list(wanted)
    if isinstance(held, bool) is not isinstance(wanted, bool):
        return False
    return held == wanted


def flattened(wanted: Wanted, *, prefix: str = "") -> dict[str, object]:
    """Return nested settings as dotted keys."""
    flat: dict[str, object] = {}
    for key, value in wanted.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            flat.update(flattened(value, prefix=f"{name}."))
        else:
            flat[name] = value
    return flat


def nested(path: list[str], value: object) -> object:
    """Wrap a value into mappings, one for each name of `path`."""
    for name in reversed(path):
        value = {name: value}
    return value
