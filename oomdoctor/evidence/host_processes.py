"""Rows of `ps` and `top`: which program holds main memory, in how many processes.

    USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND           (ps aux)
    ada         4411 99.1 14.7 82555980 12400692 pts/1 Rl 12:06  15:19 python -u train.py
      PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND         (top)
     4411 ada       20   0   78.7g  11.8g 201234 R  99.9  14.7  15:19.11 python
      RSS   PID COMMAND                                                   (ps -eo rss,pid,comm)

`ps` counts KiB; `top` counts KiB or says the unit. Without a head a row counts where it has the
eleven columns of `ps aux`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import derived, stated
from oomdoctor.evidence.kernel_tasks import Row, summed
from oomdoctor.model.core import Reading
from oomdoctor.units import unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.kernel_tasks import Tasks
    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("%mem", " vsz ", "rss", " res ", " rl ", " sl ")
LONGEST = 2000
_LEAST = 1 << 28
"""A program below 256 MiB says nothing about who filled the memory."""
_MOST_ROWS = 2000


@cache
def _aux_row() -> re.Pattern[str]:
    return re.compile(
        r"^\s*\S{1,32}\s+\d{1,8}\s+\d{1,4}(?:\.\d)?\s+\d{1,3}(?:\.\d)?\s+\d{4,14}\s+"
        r"(?P<rss>\d{1,12})\s+\S+\s+[RSDTZI][a-zA-Z<+]*\s+\S+\s+\d+:\d\d\s+(?P<command>\S.*)"
    )


def read(document: Document) -> Reading:
    """Return the program that holds most, with its processes and their sum."""
    return Reading(facts=tuple(_facts_of(document, summed(_rows(document)))))


def _rows(document: Document) -> Iterator[Row]:
    columns: list[str] = []
    seen = 0
    for line in document.lines:
        text = line.text[:LONGEST]
        upper = text.split()
        if len(upper) >= 3 and ("COMMAND" in upper or "CMD" in upper or "COMM" in upper):
            columns = upper if ("RSS" in upper or "RES" in upper) else []
            continue
        if seen >= _MOST_ROWS:
            return
        row = _of_columns(line, columns) if columns else _of_aux(line)
        if row is not None:
            seen += 1
            yield row


def _of_aux(line: LogLine) -> Row | None:
    if ":" not in line.text[:LONGEST]:
        return None
    found = _aux_row().match(line.text[:LONGEST])
    if found is None:
        return None
    return Row(_program(found["command"]), int(found["rss"]) << 10, line)


def _of_columns(line: LogLine, columns: Sequence[str]) -> Row | None:
    words = line.text[:LONGEST].split(None, len(columns) - 1)
    if len(words) < len(columns):
        return None
    row = dict(zip(columns, words, strict=True))
    figure = row.get("RSS") or row.get("RES") or ""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,3})?)([kmgtKMGT]?)", figure)
    command = row.get("COMMAND") or row.get("CMD") or row.get("COMM") or ""
    if found is None or not row.get("PID", "0").isdecimal():
        return None
    unit = unit_bytes(found[2] or "K") or 1
    return Row(_program(command), int(float(found[1]) * unit), line)


def _program(command: str) -> str:
    """Return the program's name: `/opt/env/bin/python3.10 -u train.py` is `python3.10`."""
    return command.split(maxsplit=1)[0].rsplit("/", 1)[-1].rstrip(":")[:40]


def _facts_of(document: Document, tasks: Sequence[Tasks]) -> Iterator[Fact]:
    if not tasks or tasks[0].resident < _LEAST:
        return
    first = tasks[0]
    quotes = [document.quote(line) for line in first.lines]
    source = "resident column of the process table"
    yield stated("host.tasks_name", first.name, quotes[0])
    yield derived("host.tasks", first.processes, *quotes, source="rows of that program")
    yield derived("host.tasks_resident", first.resident, *quotes, source=source)
    yield derived("host.tasks_largest", first.largest, quotes[0], source=source)
