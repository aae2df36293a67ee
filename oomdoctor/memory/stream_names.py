"""Names for the allocations of a recorded stream, from a simulation of the same job.

A history of the allocator tells sizes and order, and not which module asked. A simulation tells
that, and where it makes the same allocations in the same order, its names are theirs. Both lists
are walked side by side; where they part, the shortest way back to eight that are alike is taken,
and what lies between stays without a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.memory.stream import Allocation, Stream

ALIKE = 8
"""So many allocations in a row have to be the same for both lists to be together again."""
FARTHEST = 64
"""So many are left out of both lists at most."""

Key = tuple[int, str, str]


class Named(NamedTuple):
    """A stream with names; `alike` of its allocations have them, the rest come to `bytes` more.

    `lacking` are those of the simulation that the stream does not have.
    """

    stream: Stream
    alike: int
    unnamed_bytes: int
    lacking: int

    @property
    def is_whole(self) -> bool:
        """Say whether both made the same allocations."""
        return not self.lacking and self.alike == len(self.stream.allocations)


def named(recorded: Stream, simulated: Stream) -> Named:
    """Return the recorded stream with the operators, modules and categories of the other."""
    pairs = dict(_pairs(_keys(recorded), _keys(simulated)))
    theirs = simulated.allocations
    allocations = tuple(
        _with_names(one, theirs[pairs[number]]) if number in pairs else one
        for number, one in enumerate(recorded.allocations)
    )
    return Named(
        stream=replace(recorded, allocations=allocations),
        alike=len(pairs),
        unnamed_bytes=sum(
            one.size for number, one in enumerate(allocations) if number not in pairs
        ),
        lacking=len(theirs) - len(pairs),
    )


def _with_names(one: Allocation, other: Allocation) -> Allocation:
    return one._replace(operator=other.operator, module=other.module, category=other.category)


def _keys(stream: Stream) -> list[Key]:
    return [(one.size, one.phase, one.part) for one in stream.allocations]


def _pairs(ours: Sequence[Key], theirs: Sequence[Key]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of allocations that are the same."""
    at = other = 0
    while at < len(ours) and other < len(theirs):
        if ours[at] == theirs[other]:
            yield at, other
            at, other = at + 1, other + 1
            continue
        skipped = _way_back(ours, theirs, at, other)
        if skipped is None:
            return
        at, other = at + skipped[0], other + skipped[1]


def _way_back(
    ours: Sequence[Key], theirs: Sequence[Key], at: int, other: int
) -> tuple[int, int] | None:
    """Return how many to leave out of each list; None where they do not come together again."""
    for both in range(1, 2 * FARTHEST + 1):
        for mine in range(max(0, both - FARTHEST), min(both, FARTHEST) + 1):
            here, there = at + mine, other + both - mine
            length = min(ALIKE, len(ours) - here, len(theirs) - there)
            if length > 0 and ours[here : here + length] == theirs[there : there + length]:
                return mine, both - mine
    return None
