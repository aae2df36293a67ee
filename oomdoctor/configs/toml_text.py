"""TOML as entries with their places; what is only like it (INI) is read line by line.

[training]
local_batch_size = 8    # per rank
data = {name = "c4", streaming = true}
[[datasets.subsets]]
caption = '''
two lines'''
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import scalars, toml_scan
from oomdoctor.configs.setting import Setting, SyntaxFault, TooMuch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Lines, Plain
    from oomdoctor.configs.toml_scan import Node


def read(lines: Lines) -> Iterator[Setting]:
    """Read all keys of a text, in order; places are those of the values."""
    text = lines.text
    try:
        document = toml_scan.load(text)
    except TooMuch:
        raise
    except SyntaxFault:
        yield from _loosely(lines)
        return
    starts = [0]
    for _, row in lines.rows:
        starts.append(starts[-1] + len(row) + 1)
    for entry in document.entries:
        yield from _walk(entry.value, entry.path, lines, starts)


def _walk(node: Node, path: tuple[str, ...], lines: Lines, starts: list[int]) -> Iterator[Setting]:
    from bisect import bisect_right

    if node.kind == "map" and node.pairs:
        for pair in node.pairs:
            yield from _walk(pair.value, (*path, *pair.names), lines, starts)
        return
    if any(item.kind in ("map", "list") for item in node.items):
        for i, item in enumerate(node.items):
            yield from _walk(item, (*path, str(i)), lines, starts)
        return
    row = bisect_right(starts, node.start) - 1
    column = node.start - starts[row]
    end = min(column + node.end - node.start, len(lines.rows[row][1]))
    listed = node.kind in ("list", "map")
    said: Plain = tuple(item.value for item in node.items) if listed else node.value
    yield Setting(path, said, lines.quote(row, column, end))


def _loosely(lines: Lines) -> Iterator[Setting]:
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
