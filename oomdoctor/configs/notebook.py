r"""Jupyter notebooks: code cells as lines that know where they stand in the file.

"source": [
 "!pip install trl==0.12.0\n",
 "args = SFTConfig(\n",             line 2 of the code, its quotes in line and column of the file
 "    output_dir=\"out\")"
]
%%writefile ds_config.json           a cell that is a file of its own
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from oomdoctor.configs import json_text
from oomdoctor.configs.setting import Lines
from oomdoctor.model.core import Quote
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.configs.json_text import Node
    from oomdoctor.configs.segments import Segment

SHELLS = ("%%bash", "%%sh", "%%script bash", "%%cmd", "%%!")
FOREIGN = ("%%html", "%%javascript", "%%js", "%%latex", "%%markdown", "%%svg", "%%sql", "%%perl")
WRITES = ("%%writefile", "%%file")
ESCAPED = 6  # characters of \uXXXX


class Cell(NamedTuple):
    """The code of one cell: its text, and where in the file each character begins, and the end."""

    text: str
    offsets: tuple[int, ...]
    listed: bool  # a list of lines, not one text


class CellLines(Lines):
    """Lines of a cell; quotes are made of the line of the notebook's file."""

    def __init__(
        self, artifact: str, rows: Sequence[tuple[int, str]], *, shift: int = 0, raw: RawRows
    ) -> None:
        """Keep the rows and where their characters stand."""
        super().__init__(artifact, rows, shift=shift)
        self.raw = raw

    def part(self, rows: Sequence[tuple[int, str]], *, shift: int | None = None) -> Lines:
        """Return some of the lines, after columns were cut from their left."""
        shift = self.shift if shift is None else shift
        return CellLines(self.artifact, rows, shift=shift, raw=self.raw)

    def quote(self, row: int, start: int = 0, end: int | None = None) -> Quote:
        """Quote columns of a row as they stand in the file."""
        number, text = self.rows[min(row, len(self.rows) - 1)]
        part = text[start:end].rstrip()
        if not part:
            start, part = len(text) - len(text.lstrip()), text.strip()
        return self.raw.quote(self.artifact, number, start + self.shift, len(part))


class RawRows:
    """Where each numbered line of code stands in the file."""

    def __init__(self, text: str) -> None:
        """Keep the file; lines are added one by one."""
        self.text = text
        self.offsets: dict[int, tuple[int, ...]] = {}
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def quote(self, artifact: str, number: int, start: int, length: int) -> Quote:
        """Quote `length` characters from `start` on of a line of code."""
        places = self.offsets[number]
        first = places[min(start, len(places) - 1)]
        last = places[min(start + length, len(places) - 1)]
        line = bisect_right(self.starts, first)
        row = self.starts[line - 1]
        return Quote(
            artifact=artifact,
            line=line,
            text=self.text[first:last],
            column=first - row + 1,
            end_column=last - row + 1,
        )


@lru_cache(maxsize=1)
def cells(text: str) -> tuple[Cell, ...]:
    """Return the code cells of a notebook; SyntaxFault where it is no JSON."""
    root, _ = json_text.load(text, strict=False)
    found = root.child("cells")
    sheets = root.child("worksheets")
    if found is None and sheets is not None and sheets.items:
        found = sheets.items[0].child("cells")
    made: list[Cell] = []
    for cell in found.items if found is not None else ():
        kind, source = cell.child("cell_type"), cell.child("source") or cell.child("input")
        if kind is not None and kind.value == "code" and source is not None:
            made.append(_cell(text, source))
    return tuple(made)


def _cell(text: str, source: Node) -> Cell:
    parts = source.items if source.kind == "list" else (source,)
    said: list[str] = []
    offsets: list[int] = []
    end = source.start + 1
    for part in parts:
        if part.kind == "text":
            inner, places = _decoded(text, part)
            said.append(inner)
            offsets += places
            end = part.end - 1
    return Cell("".join(said), (*offsets, end), listed=source.kind == "list")


def _decoded(text: str, node: Node) -> tuple[str, list[int]]:
    """Return what a JSON text says, and where each of its characters begins."""
    import json

    said: list[str] = []
    places: list[int] = []
    at = node.start + 1
    while at < node.end - 1:
        width = 1
        if text[at] == "\\":
            width = ESCAPED if text[at + 1] == "u" else 2
            high = text[at : at + width].lower()
            halves = width == ESCAPED and high[2:4] in ("d8", "d9", "da", "db")
            if halves and text[at + width : at + width + 2] == "\\u":
                width *= 2  # two halves are one character
        character = text[at] if width == 1 else json.loads(f'"{text[at : at + width]}"')
        said.append(character)
        places += [at] * len(character)
        at += width
    return "".join(said), places


def segments(name: str, text: str) -> tuple[Segment, ...]:
    """Return all code of a notebook: commands and files of cells, and the Python of all of them."""
    from oomdoctor.configs.segments import Segment

    raw = RawRows(text)
    python: list[tuple[int, str]] = []
    others: list[Segment] = []
    number = 0
    for cell in cells(text):
        rows: list[tuple[int, str]] = []
        for row, places in lines_of(cell):
            number += 1
            raw.offsets[number] = places
            rows.append((number, row))
        for kind, stretch in _stretches(rows):
            if kind == "python":
                python += stretch
            elif kind is not None:
                others.append(Segment(kind, CellLines(name, stretch, raw=raw)))
    first = [Segment("python", CellLines(name, python, raw=raw))] if python else []
    return (*first, *others)


def lines_of(cell: Cell) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Go through the lines of a cell with the offsets of their characters and their end."""
    at = 0
    for row in cell.text.split("\n"):
        plain = row.rstrip("\r")
        yield plain, cell.offsets[at : at + len(plain) + 1]
        at += len(row) + 1


def _stretches(
    rows: list[tuple[int, str]],
) -> Iterator[tuple[str | None, list[tuple[int, str]]]]:
    """Cut the lines of a cell by what they are; a blank stands for each that is no Python."""
    from oomdoctor.configs.reader import SUFFIXES, suffix_of

    head = _head(rows)
    if head.startswith((*WRITES, *SHELLS)):
        kind = SUFFIXES.get(suffix_of(head.split()[-1])) if head.startswith(WRITES) else "command"
        start = next(i for i, (_, row) in enumerate(rows) if row.strip()) + 1
        if rows[start:]:
            yield (None if kind == "python" else kind), rows[start:]
        return
    shown = python_rows(rows)
    yield "python", [(n, row) for (n, _), row in zip(rows, shown, strict=True)]
    if not head.startswith(FOREIGN):
        for stretch in _commands(rows):
            yield "command", [(number, _bare(row)) for number, row in stretch]


def python_rows(rows: list[tuple[int, str]]) -> list[str]:
    """Return the lines of a cell with stand-ins for those that are no Python."""
    if _head(rows).startswith((*WRITES, *SHELLS, *FOREIGN)):
        return [""] * len(rows)
    more = {number for stretch in _commands(rows) for number, _ in stretch[1:]}
    return ["" if number in more else _blanked(row) for number, row in rows]


def _head(rows: list[tuple[int, str]]) -> str:
    return next((row.strip() for _, row in rows if row.strip()), "")


def _commands(rows: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Go through the commands among the lines of a cell, with the lines in which they go on."""
    at = 0
    while at < len(rows):
        begin = at
        if rows[at][1].lstrip().startswith(("!", "%env ", "%set_env ", "%run ")):
            while rows[at][1].rstrip().endswith("\\") and at + 1 < len(rows):
                at += 1
            yield rows[begin : at + 1]
        at += 1


def _bare(row: str) -> str:
    """Return a command without the mark in front of it, every column in its place."""
    lead = row[: len(row) - len(row.lstrip())]
    text = row[len(lead) :]
    for mark, plain in (("%set_env", "%env    "), ("%run", " run"), ("!", " ")):
        if text.startswith(mark):
            return lead + plain + text[len(mark) :]
    return row


def _blanked(row: str) -> str:
    """Return a line, or what stands in for one that is no Python, with its indentation."""
    return (
        row[: len(row) - len(row.lstrip())] + "pass" if row.lstrip().startswith(("!", "%")) else row
    )


def code(name: str, text: str) -> tuple[tuple[str, Quote], ...]:
    """Return all lines of code that are not blank, each with its quote."""
    raw = RawRows(text)
    made: list[tuple[str, Quote]] = []
    number = 0
    for cell in cells(text):
        for row, places in lines_of(cell):
            number += 1
            raw.offsets[number] = places
            if row.strip():
                made.append((row, raw.quote(name, number, 0, len(row))))
    return tuple(made)
