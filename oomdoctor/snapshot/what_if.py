"""The same requests with other settings, or on another card: an exact replay of the allocator.

Whatever was asked for and freed is asked for and freed again, in the same order. What was there
before the recording began is laid down first, in the order of its addresses, since nobody recorded
in which order it came; where there was any, the answer is that of a run with such a beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_events import complete, hold
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.record import NamedTuple, dataclass, replace
from oomdoctor.snapshot.capacity import GIVEN_BACK, TAKEN
from oomdoctor.snapshot.outcome import consistent
from oomdoctor.snapshot.shapes import NO_POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.snapshot.rewind import Beginning
    from oomdoctor.snapshot.shapes import Device, Event, PoolId

ROOMY = 1 << 50


class Failure(NamedTuple):
    """The first request that the card could not meet: its event and what it asked for."""

    event: int
    requested_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of the requests: the peaks up to the end, or up to the request that failed.

    `fraction_set` says that a memory fraction was assumed, which garbage collection needs.
    """

    settings: str
    capacity_bytes: int | None
    failure: Failure | None
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    retries: int
    fraction_set: bool = False


def what_if(
    device: Device,
    beginning: Beginning,
    settings: AllocatorSettings,
    capacity: int | None = None,
) -> Outcome:
    """Replay the requests of a device under settings; without a capacity there is no limit."""
    size = ROOMY if capacity is None else capacity
    allocator = Allocator(replace(settings, throw_on_oom=False), driver=Card(size))
    collects = settings.gc_threshold > 0 and settings.fraction is None and capacity is not None
    if collects:
        allocator.set_memory_fraction(1)
    run = _Run(device, beginning, allocator)
    with consistent():
        failure = run.forward()
    stats = allocator.memory_stats()
    return Outcome(
        settings=settings.text,
        capacity_bytes=capacity,
        failure=failure,
        peak_allocated_bytes=stats["allocated_bytes.all.peak"],
        peak_reserved_bytes=stats["reserved_bytes.all.peak"],
        retries=stats["num_alloc_retries"],
        fraction_set=collects,
    )


class _Run:
    """The requests of a trace, asked for again."""

    def __init__(self, device: Device, beginning: Beginning, allocator: Allocator) -> None:
        self.device = device
        self.beginning = beginning
        self.allocator = allocator
        self.blocks: dict[int, Block] = {}
        self.emptied = _emptied(device.events, sum(one.size for one in beginning.stretches))
        self.private = [
            (one.address, one.end, one.pool) for one in beginning.stretches if one.pool != NO_POOL
        ]

    def forward(self) -> Failure | None:
        """Go through the trace to the first request that cannot be met."""
        number, wanted = -1, 0
        try:
            for address, stream, wanted, waits in self._before():
                self.blocks[address] = block = self._ask(wanted, stream, self._pool(address, None))
                if waits:
                    self.allocator.request_free(block)
                    hold(self.allocator, block)
            for number, event in enumerate(self.device.events):
                wanted = event.size
                self._do(event, number)
        except OutOfMemoryError:
            return Failure(number, wanted)
        return None

    def _before(self) -> list[tuple[int, int, int, bool]]:
        """Return address, stream, bytes and state of what was there at the beginning."""
        held, found = sorted(self.beginning.held.items()), []
        stretches = iter(self.beginning.stretches)
        within = next(stretches, None)
        for address, one in held:
            while within is not None and address >= within.end:
                within = next(stretches, None)
            stream = within.stream if within is not None else 0
            found.append((address, stream, one.requested, one.waiting))
        return found

    def _do(self, event: Event, number: int) -> None:
        action, address = event.action, event.address
        if action == "alloc":
            pool = self._pool(address, event.pool)
            self.blocks[address] = self._ask(event.size, event.stream, pool)
        elif action == "free_requested":
            self._let_go(address, number)
        elif action == "free_completed":
            block = self.blocks.pop(address, None)
            if block is not None and block.events:
                complete(self.allocator, block)
        elif action == "oom":
            self.allocator.free(self._ask(event.size, event.stream, event.pool))
        elif number in self.emptied:
            self.allocator.empty_cache()

    def _let_go(self, address: int, number: int) -> None:
        """Free a block; it waits where the trace has something between the two events."""
        block = self.blocks.get(address)
        if block is None or not block.allocated:
            return
        events = self.device.events
        follows = events[number + 1] if number + 1 < len(events) else None
        if follows is not None and follows[:2] == ("free_completed", address):
            self.allocator.free(self.blocks.pop(address))
        else:
            self.allocator.request_free(block)
            hold(self.allocator, block)

    def _pool(self, address: int, said: PoolId | None) -> PoolId | None:
        if said is not None or not self.private:
            return said
        return next((pool for low, high, pool in self.private if low <= address < high), None)

    def _ask(self, size: int, stream: int, pool: PoolId | None) -> Block:
        allocator = self.allocator
        if pool is None or pool == NO_POOL:
            return allocator.alloc(size, stream)
        if pool not in allocator.private:
            allocator.create_pool(pool)
        allocator.diverted.append((pool, None))
        try:
            return allocator.alloc(size, stream)
        finally:
            allocator.diverted.clear()


def _emptied(events: Sequence[Event], reserved: int) -> frozenset[int]:
    """Return the events at which the program emptied the cache, not the allocator for a request.

    The allocator gives memory back where the card has no more, and then asks for some. Where all
    that was reserved and the new segment are not above the most that was ever reserved, the card
    had more.
    """
    levels, most, found = [], reserved, []
    for event in events:
        levels.append(reserved)
        if event.action in TAKEN:
            reserved += event.size
        elif event.action in GIVEN_BACK:
            reserved -= event.size
        most = max(most, reserved)
    at = 0
    while at < len(events):
        first = at
        while at < len(events) and events[at].action in GIVEN_BACK:
            at += 1
        if at > first:
            follows = events[at] if at < len(events) else None
            own = follows is not None and (
                follows.action == "oom"
                or (follows.action in TAKEN and levels[first] + follows.size > most)
            )
            if not own:
                found.append(first)
        at += 1
    return frozenset(found)
