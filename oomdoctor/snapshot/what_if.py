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
from oomdoctor.snapshot.events import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    GIVEN_BACK,
    NO_POOL,
    OOM,
    TAKEN,
)
from oomdoctor.snapshot.outcome import consistent

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.snapshot.events import Events, PoolId
    from oomdoctor.snapshot.rewind import Beginning
    from oomdoctor.snapshot.shapes import Device

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
        self._number, self._wanted = -1, 0

    def forward(self) -> Failure | None:
        """Go through the trace to the first request that cannot be met."""
        self._number, self._wanted = -1, 0
        try:
            for address, stream, wanted, waits in self._before():
                self._wanted = wanted
                self.blocks[address] = block = self._ask(wanted, stream, self._pool(address, None))
                if waits:
                    self.allocator.request_free(block)
                    hold(self.allocator, block)
            self._follow(self.device.events)
        except OutOfMemoryError:
            return Failure(self._number, self._wanted)
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

    def _follow(self, events: Events) -> None:
        """Ask for and let go of what the events do."""
        blocks, allocator, pools = self.blocks, self.allocator, events.pools
        plain = not self.private and all(one in (None, NO_POOL) for one in pools)
        kinds, addresses, streams = events.kinds, events.addresses, events.streams
        alloc, free = allocator.alloc, allocator.free
        at, end = 0, len(events)
        while at < end:
            kind, address = kinds[at], addresses[at]
            if kind == ALLOC:
                size, stream = events.sizes[at], streams[events.stream_numbers[at]]
                try:
                    if plain:
                        blocks[address] = alloc(size, stream)
                    else:
                        pool = self._pool(address, pools[events.pool_numbers[at]])
                        blocks[address] = self._ask(size, stream, pool)
                except OutOfMemoryError:
                    self._number, self._wanted = at, size
                    raise
            elif kind == FREE_REQUESTED:
                follows = at + 1 < end and kinds[at + 1] == FREE_COMPLETED
                block = blocks.get(address)
                if block is not None and block.allocated:
                    if follows and addresses[at + 1] == address:
                        del blocks[address]
                        free(block)
                        at += 1
                    else:
                        allocator.request_free(block)
                        hold(allocator, block)
            else:
                self._do_rarely(events, at)
            at += 1

    def _do_rarely(self, events: Events, at: int) -> None:
        event = events[at]
        kind = events.kinds[at]
        if kind == FREE_COMPLETED:
            block = self.blocks.pop(event.address, None)
            if block is not None and block.events:
                complete(self.allocator, block)
        elif kind == OOM:
            self._number, self._wanted = at, event.size
            self.allocator.free(self._ask(event.size, event.stream, event.pool))
        elif at in self.emptied:
            self.allocator.empty_cache()

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


def _emptied(events: Events, reserved: int) -> frozenset[int]:
    """Return the events at which the program emptied the cache, not the allocator for a request.

    The allocator gives memory back where the card has no more, and then asks for some. Where all
    that was reserved and the new segment are not above the most that was ever reserved, the card
    had more.
    """
    numbers = events.of_kinds(*TAKEN, *GIVEN_BACK)
    most, level, levels = reserved, reserved, {}
    for at in numbers:
        levels[at] = level
        taken = events.kinds[at] in TAKEN
        level += events.sizes[at] if taken else -events.sizes[at]
        most = max(most, level)
    found, given_back = [], {at for at in numbers if events.kinds[at] in GIVEN_BACK}
    for first in sorted(given_back):
        if first - 1 in given_back:
            continue
        behind = first
        while behind in given_back:
            behind += 1
        kind = events.kinds[behind] if behind < len(events) else None
        own = kind == OOM or (kind in TAKEN and levels[first] + events.sizes[behind] > most)
        if not own:
            found.append(first)
    return frozenset(found)
