r"""Edits the code of a notebook in its file: all the JSON around it stays byte for byte.

"args = SFTConfig(bf16=False)\n"   ->      "args = SFTConfig(bf16=True)\n"
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor.configs import notebook, python_edit
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted


class Code(NamedTuple):
    """The Python of all cells as one text; where each character begins and ends in the file.

    A character that stands in no cell (between two, or in the place of a command) has no place.
    """

    text: str
    begins: tuple[int | None, ...]
    ends: tuple[int | None, ...]
    listed: tuple[bool, ...]


def edit(text: str, wanted: Wanted, dialect: str) -> str | None:
    """Return the notebook with all wanted changes; None where no cell takes them."""
    for key, value in wanted.items():
        code = _code(text)
        after = python_edit.edit(code.text, {key: value}, dialect)
        changed = None if after is None else _spliced(text, code, after)
        if changed is None or _code(changed).text != after:
            return None
        text = changed
    return text


def held(text: str, key: str, dialect: str) -> tuple[bool, object]:
    """Return whether a setting is given in a notebook, and its value."""
    return python_edit.held(_code(text).text, key, dialect)


def _code(text: str) -> Code:
    said: list[str] = []
    begins: list[int | None] = []
    ends: list[int | None] = []
    listed: list[bool] = []
    for cell in notebook.cells(text):
        rows = [(i, row) for i, row in enumerate(cell.text.split("\n"))]
        kept = notebook.python_rows(rows)
        at = 0
        for (_, row), shown in zip(rows, kept, strict=True):
            places = cell.offsets[at : at + len(row) + 1]
            own = shown == row
            said.append(shown + "\n")
            begins += [*places[: len(row)], places[len(row)]] if own else [None] * (len(shown) + 1)
            ends += _ends(text, cell, at, len(row)) if own else [None] * (len(shown) + 1)
            listed += [cell.listed] * (len(shown) + 1)
            at += len(row) + 1
        if begins:  # the line end behind a cell is none of the file
            begins[-1] = ends[-1] = None
    return Code("".join(said), tuple(begins), tuple(ends), tuple(listed))


def _ends(text: str, cell: notebook.Cell, at: int, length: int) -> list[int | None]:
    """Return where each character of a line ends in the file, its line end included."""
    ends: list[int | None] = []
    for i in range(at, min(at + length + 1, len(cell.text))):
        begin = cell.offsets[i]
        if text[begin] != "\\":
            ends.append(begin + 1)
            continue
        width = notebook.ESCAPED if text[begin + 1] == "u" else 2
        after = cell.offsets[i + 1]
        ends.append(max(begin + width, min(after, begin + 2 * width) if width > 2 else 0))
    return [*ends, *([None] * (length + 1 - len(ends)))]


def _spliced(text: str, code: Code, after: str) -> str | None:
    """Put the changed stretch of the code into the file."""
    before = code.text
    if after == before:
        return text
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    tail = 0
    room = min(len(before), len(after)) - start
    while tail < room and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle, end = after[start : len(after) - tail], len(before) - tail
    places = code.begins[start:end]
    if any(place is None for place in places):
        return None
    if start < end:
        first, last = places[0], code.ends[end - 1]
        if not middle and before[end - 1] == "\n" and before[:start].endswith("\n"):
            last = code.begins[end] if end < len(before) else last  # the whole line goes
    else:
        first = last = _gap(code, start)
    if first is None or last is None:
        return None
    at = max(min(start, len(before) - 1), 0)
    return text[:first] + _encoded(text, first, middle, listed=code.listed[at]) + text[last:]


def _gap(code: Code, at: int) -> int | None:
    """Return where in the file something stands that is put before a character of the code."""
    behind = code.ends[at - 1] if at else None
    if behind is not None and code.text[at - 1] != "\n":
        return behind
    return code.begins[at] if at < len(code.begins) else None


def _encoded(text: str, at: int, said: str, *, listed: bool) -> str:
    """Write code as JSON; in a list each line is a text of its own."""
    plain = text.isascii()
    written = [json.dumps(row, ensure_ascii=plain)[1:-1] for row in said.split("\n")]
    if not listed:
        return "\\n".join(written)
    row = text.rfind("\n", 0, at) + 1
    lead = text[row:at].partition('"')[0]
    ended = "\r\n" if text[row - 2 : row - 1] == "\r" else "\n"
    between = f"{ended}{lead}" if row and not lead.strip() else " "
    return f'\\n",{between}"'.join(written)
