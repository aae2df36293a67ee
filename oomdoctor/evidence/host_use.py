"""How full main memory was, as programs print it while they run.

    [utils.py:838:see_memory_usage] CPU Virtual Memory:  used = 28.43 GB, percent = 22.6%
    Memory on the node (IP: 10.0.0.4) where the task was running was 29.55GB / 31.00GB (0.95)
    step 40 | RAM usage: 93.1% | VRAM: 71.0%

DeepSpeed's percentage gives the whole: used / share. The figure nearest before the failure counts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.moment import at_failure, failure_index
from oomdoctor.model.core import Fact, Reading
from oomdoctor.model.enums import Origin
from oomdoctor.units import SIZE_PATTERN, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, LogLine

ANCHORS = (
    "virtual memory",
    "ram usage",
    "ram used",
    "ram:",
    "ram_percent",
    "cpu memory",
    "cpu mem",
    "host memory",
    "system memory",
    "was running was",
)
LONGEST = 2000


@cache
def _of_node() -> re.Pattern[str]:
    return re.compile(
        rf"was running was (?P<used>{SIZE_PATTERN}) / (?P<total>{SIZE_PATTERN})"
        r" \((?P<share>[01]\.\d+)\)"
    )


@cache
def _percent() -> re.Pattern[str]:
    return re.compile(
        r"(?<![A-Za-z])(?:RAM|(?:CPU )?virtual memory|(?:CPU|host|system|main) mem(?:ory)?)"
        rf"(?![A-Za-z])(?:[^%\d|]{{0,40}}(?P<used>{SIZE_PATTERN}))?[^%\d|]{{0,30}}"
        r"(?P<percent>\d{1,3}(?:\.\d{1,3})?) ?%",
        re.IGNORECASE,
    )


def read(document: Document) -> Reading:
    """Return the share of main memory in use, and the whole where the line tells it."""
    found = [
        (index, tuple(_facts_of(document, line)))
        for index, line in enumerate(document.lines)
        if any(anchor in line.text[:LONGEST].lower() for anchor in ANCHORS)
    ]
    failure = failure_index(document)
    chosen = at_failure(
        [pair for pair in found if pair[1]], order=lambda pair: pair[0], failure=failure
    )
    return Reading(facts=chosen[1] if chosen is not None else ())


def _facts_of(document: Document, line: LogLine) -> Iterator[Fact]:
    text = line.text[:LONGEST]
    node = _of_node().search(text)
    if node is not None:
        quote = document.quote(line, *node.span())
        total = parse_size(node["total"])
        yield stated("host.used_share", float(node["share"]), quote, slack=_half(node["share"]))
        if total is not None:
            yield stated("host.ram_total", total.bytes, quote, slack=total.slack_bytes)
        return
    said = _percent().search(text)
    if said is None or not 0 < float(said["percent"]) <= 100:
        return
    quote = document.quote(line, *said.span())
    share, slack = float(said["percent"]) / 100, _half(said["percent"]) / 100
    yield stated("host.used_share", share, quote, slack=slack)
    used = parse_size(said["used"]) if said["used"] else None
    if used is not None:
        yield Fact(
            key="host.ram_total",
            value=int(used.bytes / share),
            slack=(used.slack_bytes + used.bytes * slack / share) / share,
            origin=Origin.DERIVED,
            quotes=(quote,),
            source="used / share in use",
        )


def _half(figure: str) -> float:
    """Return half a unit of the last digit."""
    return 0.5 / float(10 ** len(figure.partition(".")[2]))
