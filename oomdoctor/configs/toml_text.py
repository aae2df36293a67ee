"""TOML (and INI) read line by line, so that every value keeps its place.

[training]
local_batch_size = 8    # per rank
seq_len = 8192
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import scalars
from oomdoctor.configs.setting import Setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Lines


def read(lines: Lines) -> Iterator[Setting]:
    """Read sections and keys; values that go over several lines are taken by their first one."""
    section: tuple[str, ...] = ()
    for row, (_, line) in enumerate(lines.rows):
        text = line.strip()
        if text.startswith("[") and "]" in text and "=" not in text:
            name = text.strip("[]# ").partition("]")[0]
            section = tuple(part.strip(" \"'") for part in name.split(".") if part.strip())
            continue
        key, equals, _ = line.partition("=")
        if not equals or not key.strip() or text.startswith(("#", ";")):
            continue
        start = len(key) + 1
        start += len(line[start:]) - len(line[start:].lstrip())
        end = _end(line, start)
        written = line[start:end].strip()
        if written:
            path = (*section, *(part.strip(" \"'") for part in key.split(".")))
            yield Setting(path, scalars.value_of(written), lines.quote(row, start, end))


def _end(line: str, start: int) -> int:
    """Return where the value ends: at its closing quote, or before a comment."""
    if line[start : start + 1] in ('"', "'"):
        close = line.find(line[start], start + 1)
        return close + 1 if close > 0 else len(line)
    at = line.find("#", start)
    return at if at >= 0 else len(line)
