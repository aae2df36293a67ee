"""What a replay found: how far the allocator model and a recording agree."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.memory.allocator import Allocator
    from oomdoctor.memory.allocator_block import Block

BROKEN = (KeyError, ValueError, IndexError, AttributeError, OverflowError)
"""What the model's own books raise when they are asked to do what cannot be."""


@contextmanager
def consistent() -> Iterator[None]:
    """Refuse a trace with an InputError where it asks the model for what cannot be."""
    try:
        yield
    except BROKEN as error:
        raise InputError(
            "the events of the trace contradict one another, so it cannot be replayed",
            hint="the file may have been changed after it was written",
        ) from error


class Reached(NamedTuple):
    """The allocator before an event, and its blocks by the addresses that were recorded.

    `exact` says whether all addresses up to there are the recorded ones.
    """

    allocator: Allocator
    blocks: dict[int, Block]
    exact: bool


class Look(NamedTuple):
    """What is done before the event with the number `moment`."""

    moment: int
    see: Callable[[Reached], None]


class Difference(NamedTuple):
    """The first allocation that the model placed elsewhere, by its number in the trace."""

    device: int
    event: int
    size: int
    recorded: int
    modelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How far model and recording agree.

    `seconds` are those of a core, for the replay alone; of short traces the fastest of five.
    """

    allocations: int = 0
    same_address: int = 0
    segment_events: int = 0
    same_segment_events: int = 0
    events: int = 0
    seconds: float = 0.0
    corrections: int = 0
    faults: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    first_difference: Difference | None = None

    @property
    def events_per_second(self) -> int:
        """Return the speed of the replay."""
        return round(self.events / self.seconds) if self.seconds > 0 else 0

    @property
    def equal(self) -> bool:
        """Say whether every address and every event about segments is the recorded one."""
        return (
            self.allocations == self.same_address
            and self.segment_events == self.same_segment_events
        )

    def plus(self, other: Replay) -> Replay:
        """Return the comparison of both together."""
        return Replay(
            allocations=self.allocations + other.allocations,
            same_address=self.same_address + other.same_address,
            segment_events=self.segment_events + other.segment_events,
            same_segment_events=self.same_segment_events + other.same_segment_events,
            events=self.events + other.events,
            seconds=self.seconds + other.seconds,
            corrections=self.corrections + other.corrections,
            faults=self.faults + other.faults,
            peak_allocated=max(self.peak_allocated, other.peak_allocated),
            peak_reserved=max(self.peak_reserved, other.peak_reserved),
            first_difference=self.first_difference or other.first_difference,
        )
