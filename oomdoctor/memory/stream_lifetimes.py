"""Which part of a run each allocation of a stream outlives."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.stream import Stream

PHASE, PART = "phase", "part"


class Stretch(NamedTuple):
    """The events from `start` on that belong to one part of one phase."""

    start: int
    phase: str
    part: str


class Lifetimes(NamedTuple):
    """The event that made each allocation, and the one that freed it (one past the last: none)."""

    born: Sequence[int]
    died: Sequence[int]


def stretches(stream: Stream) -> tuple[Stretch, ...]:
    """Return where parts of phases begin, in order; what comes first may have no name."""
    found = [Stretch(0, "", "")]
    for mark in sorted(stream.marks, key=lambda one: one.at):
        if mark.kind == PHASE:
            found.append(Stretch(mark.at, mark.text, ""))
        elif mark.kind == PART:
            found.append(Stretch(mark.at, found[-1].phase, mark.text))
    return tuple(found)


def ends_of(bounds: Sequence[Stretch], count: int) -> list[int]:
    """Return where each stretch of `count` events ends."""
    return [*(one.start for one in bounds[1:]), count]


def index_at(starts: Sequence[int], event: int) -> int:
    """Return which stretch an event belongs to."""
    return max(bisect_right(starts, event) - 1, 0)


def lifetimes(stream: Stream) -> Lifetimes:
    """Return when each allocation is made and freed."""
    count = len(stream.events)
    born = array("q", [count]) * len(stream.allocations)
    died = array("q", [count]) * len(stream.allocations)
    for at, event in enumerate(stream.events):
        if event < 0:
            died[~event] = at
        else:
            born[event] = at
    return Lifetimes(born, died)
