"""Results of trials that a person or a sweep wrote down, some of which ran out of memory.

    | batch | seq  | peak     |                  batch 4 -> 21.3 GiB
    |-------|------|----------|                  batch 8 -> OOM
    | 4     | 4096 | 21.3 GiB |
    | 8     | 4096 | OOM      |                  nodes  accumulation  result
                                                 16     4             OOM, 74 GiB allocated

A cell that says `OOM` is a failure that was seen; `OOM score`, `OOM: 0` or a column's name is none.
Where two rows differ in a size of the batch alone, and the smaller one ran, that is a trial.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.events import fact, line_quote
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Failure
from oomdoctor.record import NamedTuple
from oomdoctor.units import SIZE_PATTERN, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, Fact, LogLine

LONGEST = 400
MOST_ROWS = 200
"""Lines with the word that are looked at, and rows of one table."""

NEAR = 8
"""Rows of one table stand so near to each other."""


class Row(NamedTuple):
    """One line of a table: its cells, and the mark or mark-up that parts them."""

    line: LogLine
    cells: tuple[str, ...]
    parted: str

    @property
    def failed(self) -> bool:
        """Whether a cell says that memory ran out, and others say of what."""
        failing = [cell for cell in self.cells if _says_oom().match(cell)]
        rest = [cell for cell in self.cells if cell not in failing]
        return bool(failing) and any(any(map(str.isdecimal, cell)) for cell in rest)


@cache
def _says_oom() -> re.Pattern[str]:
    return re.compile(
        r"[*_`~\s\u2717\u274c\u2718x-]{0,6}(?:(?:CUDA|GPU|VRAM)[ -])?OOM(?:ed)?[*_`~!.\s]{0,6}"
        r"(?:$|[,;(@]|(?:at|in|on|with|after|during)\b)"
    )


@cache
def _arrow() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?P<what>[^|>]{1,80}?\d[^|>]{0,40}?)\s*(?:->|=>|\u2192|:)\s+(?P<came>\S.*)$"
    )


@cache
def _size_name() -> re.Pattern[str]:
    return re.compile(
        r"\W*(?:(?:micro|mini|local|per[_ -]?(?:device|gpu))[_ -]?)?(?:batch|bs|mbs|lbs)"
        r"(?:[_ -]?size)?\W*$"
        r"|\W*(?:max[_ -]?)?(?:seq(?:uence)?|context|ctx)(?:[_ -]?len(?:gth)?)?\W*$"
        r"|\W*(?:tokens|resolution|frames)\W*$",
        re.IGNORECASE,
    )


@cache
def _allocated() -> re.Pattern[str]:
    return re.compile(rf"(?P<size>{SIZE_PATTERN}) allocated\b")


def failures_of(document: Document) -> Iterator[Failure]:
    """Yield the failure of the first row that ran out of memory, with what the table shows."""
    for index in haystack_of(document).telling(("oom",))[:MOST_ROWS]:
        row = _row(document.lines[index])
        if row is None or not row.failed:
            continue
        table = _table(document, index, row)
        if len(table) < 2:
            continue
        quote = line_quote(document, row.line)
        yield Failure(
            kind="gpu-oom",
            order=row.line.number,
            line_quote=quote,
            facts=(
                fact("oom.seen", value=True, quotes=[quote]),
                fact("oom.figures_given", value=False, quotes=[quote]),
                *_held(document, row),
                *_trial(document, table),
            ),
            rank=row.line.rank,
            stamp=row.line.stamp,
            indirect=True,
        )
        return


def _row(line: LogLine) -> Row | None:
    """Return the cells of a line of a table, or of `what -> what came of it`."""
    text = line.text
    if len(text) > LONGEST:
        return None
    for parted, cells in (
        ("|", text.strip().strip("|").split("|") if text.count("|") > 1 else ()),
        ("\t", text.strip().split("\t")),
        (" ", re.split(r"\s{2,}", text.strip())),
    ):
        if len(cells) > 1:
            return Row(line, tuple(cell.strip() for cell in cells), parted)
    found = _arrow().match(text)
    return None if found is None else Row(line, (found["what"], found["came"].strip()), ">")


def _table(document: Document, index: int, row: Row) -> list[Row]:
    """Return the rows around a row that have its shape; lines that say something else end it."""
    rows = [row]
    for step in (-1, 1):
        missed, at = 0, index + step
        while 0 <= at < len(document.lines) and missed < NEAR and len(rows) < MOST_ROWS:
            other = _row(document.lines[at])
            if other is not None and _alike(other, row):
                rows.append(other)
                missed = 0
            else:
                missed += 1
            at += step
    return sorted(rows, key=lambda one: one.line.number)


def _alike(other: Row, row: Row) -> bool:
    if other.parted != row.parted or len(other.cells) != len(row.cells):
        return False
    return row.parted != ">" or _shape(other.cells[0]) == _shape(row.cells[0])


def _shape(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "0", text)


def _held(document: Document, row: Row) -> Iterator[Fact]:
    """Yield what the failing row says was allocated."""
    found = _allocated().search(row.line.text)
    size = None if found is None else parse_size(found["size"])
    if found is not None and size is not None:
        quote = document.quote(row.line, *found.span())
        yield stated("torch.allocated", size.bytes, quote, slack=size.slack_bytes)


def _trial(document: Document, table: Sequence[Row]) -> Iterator[Fact]:
    """Yield that a smaller batch ran, where two rows differ in one size alone."""
    failed = [row for row in table if row.failed]
    ran = [row for row in table if not row.failed and _ran(row)]
    for bad in failed:
        for good in ran:
            if _smaller(good, bad, _names(table)):
                quotes = (document.quote(bad.line), document.quote(good.line))
                yield stated("trial.smaller_batch", "runs", *quotes)
                return


def _ran(row: Row) -> bool:
    """Say whether the last cell is a result: a figure, or a word for a good end."""
    return (
        re.match(
            r"[*_`~\s\u2713\u2714\u2705]*(?:\d|ok|fits?|fine|works?|runs?|pass)",
            row.cells[-1],
            re.IGNORECASE,
        )
        is not None
    )


def _names(table: Sequence[Row]) -> tuple[str, ...]:
    """Return the names of the columns: the cells of the first row, where it has no figures."""
    head = table[0]
    return head.cells if not any(map(str.isdecimal, "".join(head.cells))) else ()


def _smaller(good: Row, bad: Row, names: Sequence[str]) -> bool:
    """Say whether one row is a smaller trial of the other: all else is the same."""
    pairs = _settings(good, bad, names)
    different = [(name, one, other) for name, one, other in pairs if one != other]
    if len(different) != 1:
        return False
    name, one, other = different[0]
    if _size_name().match(name) is None:
        return False
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)


def _settings(good: Row, bad: Row, names: Sequence[str]) -> list[tuple[str, str, str]]:
    if good.parted != ">":
        columns = list(zip(names, good.cells, bad.cells, strict=False))
        failing = [at for at, cell in enumerate(bad.cells) if _says_oom().match(cell)]
        return [column for at, column in enumerate(columns) if at < failing[0]]
    return [
        (re.sub(r"[\W_]+$", "", first[1]), first[2], second[2])
        for first, second in zip(_named(good.cells[0]), _named(bad.cells[0]), strict=False)
    ]


def _named(text: str) -> list[tuple[str, str, str]]:
    """Return (all, name, figure) of each figure in `batch 4, seq=2048`."""
    return [
        (found[0], found[1], found[2])
        for found in re.finditer(r"([A-Za-z_ -]{1,30}?)\s*[=: ]\s*(\d+)\b", text)
    ]
