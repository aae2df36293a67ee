"""Memory lines of Megatron: what one rank held at an iteration, in MiB.

    [Rank 3] (after 20 iterations) memory (MB) | allocated: 18241.5 | max allocated: 39022.25
        | reserved: 41210.0 | max reserved: 41210.0

They stand on one line. The line nearest before the failure counts, of the failing rank where one
is named; figures that an allocator's message states are left to it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.moment import at_failure, failure_index, message_states_balance
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("memory (mb) |",)
MIB = 1 << 20
LONGEST = 2000
_KEYS = {
    "allocated": "torch.allocated",
    "max allocated": "torch.peak_allocated",
    "reserved": "torch.reserved",
    "max reserved": "torch.peak_reserved",
}


@cache
def _line() -> re.Pattern[str]:
    return re.compile(r"\(after (?P<step>\d+) iterations?\) memory \(MB\) \|")


@cache
def _figure() -> re.Pattern[str]:
    return re.compile(
        r"(?<=\| )(?P<name>(?:max )?(?:allocated|reserved)): (?P<value>\d+(?:\.\d+)?)"
    )


def read(document: Document) -> Reading:
    """Return the figures of the line that belongs to the failure."""
    indexes = haystack_of(document).lines_with(ANCHORS)
    lines = [(index, document.lines[index]) for index in indexes]
    found = [pair for pair in lines if _line().search(pair[1].text[:LONGEST])]
    if not found or message_states_balance(document):
        return Reading()
    failure = failure_index(document)
    rank = document.lines[failure].rank if failure is not None else None
    own = [pair for pair in found if rank is not None and pair[1].rank == rank]
    chosen = at_failure(own or found, order=lambda pair: pair[0], failure=failure)
    return Reading(facts=tuple(_facts_of(document, chosen[1]))) if chosen else Reading()


def _facts_of(document: Document, line: LogLine) -> Iterator[Fact]:
    for figure in _figure().finditer(line.text[:LONGEST]):
        value = figure["value"]
        half = 0.5 / float(10 ** len(value.partition(".")[2])) * MIB
        quote = document.quote(line, *figure.span())
        yield stated(_KEYS[figure["name"]], int(float(value) * MIB), quote, slack=half)
