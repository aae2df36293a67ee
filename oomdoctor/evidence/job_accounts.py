"""What batch systems account for a job: the memory it asked for, its peak, and how it ended.

    JobID           JobName      State ExitCode     ReqMem     MaxRSS          (sacct)
    8812              train OUT_OF_ME+    0:125        32G
    8812.batch        batch OUT_OF_ME+    0:125              33403212K
    8812|train|OUT_OF_MEMORY|32Gn|33403212K                                    (sacct -P)
    Memory Utilized: 31.90 GB                                                  (seff)
    Memory Efficiency: 99.69% of 32.00 GB
    Memory Efficiency: 99.69% of 32.00 GB (4.00 GB/core)
    slurmstepd: error: Step 8812.0 exceeded memory limit (41393168 > 20971520), being killed
    slurmstepd: error: StepId=8812.0 exceeded memory limit (6815744 > 6710886), being killed
    =>> PBS: job killed: mem 68157440kb exceeded limit 67108864kb

Slurm's bare figures are KiB. `ReqMem` ends in `n` (per node) or `c` (per CPU) before 21.08. MaxRSS
is sampled and may lie below the true peak.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, first_of_each, stated
from oomdoctor.model.core import Reading
from oomdoctor.units import SIZE_PATTERN, parse_size, size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = (
    "maxrss",
    "reqmem",
    "memory utilized",
    "memory efficiency",
    "exceeded memory limit",
    "exceeded virtual memory limit",
    "exceeded limit",
)
KIB = 1 << 10
_WIDEST = 40


@cache
def _exceeded() -> re.Pattern[str]:
    return re.compile(
        r"exceeded (?:virtual )?memory limit \((?P<used>\d{1,15}) > (?P<limit>\d{1,15})\)"
        r"|\bmem (?P<pbs_used>\d{1,15})kb exceeded limit (?P<pbs_limit>\d{1,15})kb"
    )


@cache
def _efficiency() -> re.Pattern[str]:
    return re.compile(
        rf"Memory Utilized: (?P<used>{SIZE_PATTERN})"
        rf"|Memory Efficiency: [\d.]+% of (?P<limit>{SIZE_PATTERN})"
    )


@cache
def _cell() -> re.Pattern[str]:
    return re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMGT]?)(?P<per>[nc]?)\Z")


def read(document: Document) -> Reading:
    """Return the limit and the peak of the job as its batch system states them."""
    facts: list[Fact] = []
    heads: list[tuple[str, int, int]] = []
    delimited: list[str] | None = None
    for line in document.lines:
        text = line.text
        if len(text) > MAX_TABLE_LINE:
            continue
        lowered = text.lower()
        if ("maxrss" in lowered or "reqmem" in lowered) and not any(c in text for c in "=,"):
            delimited = lowered.split("|") if "|" in text else None
            heads = [] if delimited else _columns(text)
        elif delimited is not None and text.count("|") >= len(delimited) - 1:
            cells = dict(zip(delimited, text.split("|"), strict=False))
            facts += _cells(document, line, cells)
        elif heads:
            facts += _cells(document, line, _row(text, heads))
        facts += _sentences(document, line)
    return Reading(facts=_largest_use(facts))


def _columns(text: str) -> list[tuple[str, int, int]]:
    """Return the columns of a fixed-width head: names are right-aligned over their cells."""
    words = list(re.finditer(r"\S+", text))
    return [
        (found[0].lower(), words[at - 1].end() if at else 0, found.end())
        for at, found in enumerate(words)
    ]


def _row(text: str, heads: list[tuple[str, int, int]]) -> dict[str, str]:
    """Return the cells below the heads: a word belongs to the column in which it ends."""
    row: dict[str, str] = {}
    for found in re.finditer(r"\S+", text):
        for name, start, end in heads:
            if start < found.end() <= end and name not in row:
                row[name] = found[0][:_WIDEST]
                break
    return row


def _cells(document: Document, line: LogLine, row: dict[str, str]) -> Iterator[Fact]:
    for column, key in (("maxrss", "host.group_used"), ("reqmem", "host.group_limit")):
        found = _cell().match(row.get(column, "").strip())
        if found is None or (found["per"] == "c" and column == "reqmem"):
            continue
        unit = unit_bytes(found["unit"] or ("K" if column == "maxrss" else "M")) or KIB
        if float(found["number"]) <= 0:
            continue
        size = size_of(found["number"], unit)
        yield stated(key, size.bytes, document.quote(line), slack=size.slack_bytes)


def _sentences(document: Document, line: LogLine) -> Iterator[Fact]:
    if "exceeded" in line.text:
        found = _exceeded().search(line.text)
        if found is not None:
            quote = document.quote(line, *found.span())
            used = int(found["used"] or found["pbs_used"])
            limit = int(found["limit"] or found["pbs_limit"])
            yield stated("host.group_used", used * KIB, quote, slack=KIB / 2)
            yield stated("host.group_limit", limit * KIB, quote, slack=KIB / 2)
    elif "Memory " in line.text:
        found = _efficiency().search(line.text)
        if found is not None:
            what = "used" if found["used"] else "limit"
            size = parse_size(found[what])
            if size is not None:
                quote = document.quote(line, *found.span())
                yield stated(f"host.group_{what}", size.bytes, quote, slack=size.slack_bytes)


def _largest_use(facts: list[Fact]) -> tuple[Fact, ...]:
    """Keep the first limit and the largest use: a job has a row for each of its steps."""
    used = [fact for fact in facts if fact.key == "host.group_used"]
    top = max(used, key=lambda fact: fact.value if isinstance(fact.value, int) else 0, default=None)
    return first_of_each([*([top] if top is not None else []), *facts])
