"""Tables of processes summed up by name, and the one in a kernel's out-of-memory report.

    [ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name           3.10
    [ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name   4.4-4.14
    [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name  4.15-6.6
    [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents
        oom_score_adj name                                                              6.7 on
    [   4411]  1000  4411  9111222  2097152 18874368        0             0 python3

Sizes are in pages of 4 KiB. A head that is cut off leaves the common columns, which all versions
share up to `rss`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.core import LogLine

PAGE = 4096
LONGEST = 300
_NAMED = 5


class Tasks(NamedTuple):
    """Processes of one name: how many, their resident bytes, and the rows."""

    name: str
    processes: int
    resident: int
    largest: int
    lines: tuple[LogLine, ...]


class Row(NamedTuple):
    """One process: its name, its resident bytes, and the line that says so."""

    name: str
    resident: int
    line: LogLine


@cache
def _row() -> re.Pattern[str]:
    return re.compile(
        r"\[ {0,6}\d{1,7}\] {1,6}\d{1,10} {1,7}\d{1,7} {1,12}\d{1,14} {1,12}(?P<rss>\d{1,12})"
        r"(?P<rest>(?: {1,16}-?\d{1,16}){3,8}) (?P<name>\S.{0,40})$"
    )


def rows_of(lines: Iterable[LogLine]) -> tuple[Row, ...]:
    """Return the rows of a task table among `lines`."""
    found = []
    for line in lines:
        if "]" not in line.text[:LONGEST] or len(line.text) > LONGEST:
            continue
        hit = _row().search(line.text)
        if hit is not None:
            found.append(Row(hit["name"].strip(), int(hit["rss"]) * PAGE, line))
    return tuple(found)


def summed(rows: Iterable[Row]) -> tuple[Tasks, ...]:
    """Sum rows by name, the name with most resident memory first."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    tasks = [
        Tasks(
            name,
            len(own),
            sum(row.resident for row in own),
            max(row.resident for row in own),
            tuple(row.line for row in sorted(own, key=lambda row: -row.resident)[:_NAMED]),
        )
        for name, own in by_name.items()
    ]
    return tuple(sorted(tasks, key=lambda one: (-one.resident, one.name)))
