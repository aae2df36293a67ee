"""A stream of allocations put through the allocator model, on a card of some capacity.

    replay(stream, settings="expandable_segments:True", capacity_bytes=24 << 30)

gives the peaks of each phase as `max_memory_allocated` and `max_memory_reserved` would, were they
reset where the phase begins, and the request that fails where the card is too small.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.memory.stream_lifetimes import PHASE
from oomdoctor.model.estimate import PhasePeak
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.memory.allocator_oom import Shortage
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.memory.stream import Allocation, Mark, Stream

UNLIMITED = 1 << 50
EMPTY_CACHE, USE = "empty-cache", "use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The request that failed: which event and allocation, and the card at that moment."""

    event: int
    number: int
    allocation: Allocation
    shortage: Shortage


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a stream under some settings on some card.

    `peak_event` is the event that reached `peak_allocated`. `blocks` has the bytes of the block
    of each allocation that was made; `allocated` and `reserved` are the figures after each event.
    `retries` counts how often the cache was given back because the card was full.
    """

    phases: tuple[PhasePeak, ...]
    peak_allocated: int
    peak_reserved: int
    peak_event: int
    blocks: Sequence[int]
    allocated: Sequence[int]
    reserved: Sequence[int]
    retries: int = 0
    failed: Failed | None = None

    @property
    def oom(self) -> Shortage | None:
        """Return the state of the card where a request failed; None where every one was met."""
        return None if self.failed is None else self.failed.shortage


def replay(
    stream: Stream,
    *,
    settings: AllocatorSettings | str = "",
    capacity_bytes: int | None = None,
    outside_bytes: int = 0,
) -> Replay:
    """Replay a stream; `outside_bytes` of the capacity are held by others than the allocator."""
    whole = UNLIMITED if capacity_bytes is None else capacity_bytes
    driver = Card(whole, used=min(outside_bytes, whole))
    return _Run(stream, Allocator(settings, driver=driver)).played()


class _Start(NamedTuple):
    """Where a phase begins, and what there is at that moment."""

    name: str
    event: int
    allocated: int
    reserved: int


class _Run:
    """One replay: the allocator, who has which block, and the figures so far."""

    def __init__(self, stream: Stream, allocator: Allocator) -> None:
        self._stream = stream
        self._allocator = allocator
        self._held: list[Block | None] = []
        self._blocks = array("q")
        self._allocated = array("q")
        self._reserved = array("q")
        self._failed: Failed | None = None

    def played(self) -> Replay:
        stream = self._stream
        starts: list[_Start] = []
        at = 0
        for mark in sorted(stream.marks, key=lambda one: one.at):
            at = self._events(at, min(mark.at, len(stream.events)))
            if self._failed is not None:
                break
            if mark.kind == PHASE:
                allocator = self._allocator
                starts.append(_Start(mark.text, at, allocator.allocated, allocator.reserved))
            else:
                self._mark(mark)
        if self._failed is None:
            self._events(at, len(stream.events))
        peak = max(self._allocated, default=0)
        return Replay(
            phases=self._phases(starts),
            peak_allocated=peak,
            peak_reserved=max(self._reserved, default=0),
            peak_event=self._allocated.index(peak) if self._allocated else 0,
            blocks=self._blocks,
            allocated=self._allocated,
            reserved=self._reserved,
            retries=self._allocator.stats.counters["num_alloc_retries"],
            failed=self._failed,
        )

    def _events(self, first: int, end: int) -> int:
        """Play the events from `first` to before `end`; stop at a request that fails."""
        allocator, held, allocations = self._allocator, self._held, self._stream.allocations
        alloc, free = allocator.alloc, allocator.free
        add_block = self._blocks.append
        add_allocated, add_reserved = self._allocated.append, self._reserved.append
        total = allocator.allocated
        for event in self._stream.events[first:end]:
            if event < 0:
                block = held[~event]
                if block is None:
                    raise ValueError(f"allocation {~event} is freed twice")
                held[~event] = None
                total -= block.size
                free(block)
            else:
                wanted = allocations[event]
                try:
                    block = alloc(wanted[0], wanted[6])
                except OutOfMemoryError as error:
                    self._fail(event, error.shortage)
                    return len(self._allocated)
                held.append(block)
                size = block.size
                add_block(size)
                total += size
            add_allocated(total)
            add_reserved(allocator.reserved)
        return end

    def _fail(self, number: int, shortage: Shortage) -> None:
        self._failed = Failed(
            event=len(self._allocated),
            number=number,
            allocation=self._stream.allocations[number],
            shortage=shortage,
        )

    def _mark(self, mark: Mark) -> None:
        if mark.kind == EMPTY_CACHE:
            self._allocator.empty_cache()
        elif mark.kind == USE:
            block = self._held[mark.number]
            if block is not None:
                self._allocator.record_stream(block, int(mark.text))

    def _phases(self, starts: Sequence[_Start]) -> tuple[PhasePeak, ...]:
        """Return the peaks of each phase; what is there when it begins counts."""
        ends = [one.event for one in starts[1:]] + [len(self._allocated)] * bool(starts)
        return tuple(
            PhasePeak(
                name=one.name,
                allocated_bytes=max([one.allocated, *self._allocated[one.event : end]]),
                reserved_bytes=max([one.reserved, *self._reserved[one.event : end]]),
            )
            for one, end in zip(starts, ends, strict=True)
        )
