"""What the allocator model holds, and the small steps that all its rules are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.segments import BLOCK, LARGE_REQUEST, LARGE_STEP, SMALL_REQUEST, SMALL_SEGMENT
from oomdoctor.memory.allocator_block import DEFAULT_POOL, Block, Pool, PrivatePool
from oomdoctor.memory.allocator_oom import Shortage
from oomdoctor.memory.allocator_settings import interval
from oomdoctor.memory.allocator_stats import Statistics

if TYPE_CHECKING:
    from collections import deque

    from oomdoctor.memory.allocator_block import PoolId
    from oomdoctor.memory.allocator_driver import Driver
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.memory.allocator_trace import Trace


class State:
    """Pools, figures and outstanding events of one card."""

    def __init__(
        self, settings: AllocatorSettings, driver: Driver, trace: Trace | None = None
    ) -> None:
        """Start with no memory."""
        self.settings = settings
        self.driver = driver
        self.trace = trace
        self.stats = Statistics()
        self.small = Pool(small=True)
        self.large = Pool(small=False)
        self.reserved = 0
        self.allowed: int | None = None
        self.private: dict[PoolId, PrivatePool] = {}
        self.freeable: dict[PoolId, PrivatePool] = {}
        self.waiting: dict[int, deque[Block]] = {}
        self.deferred: list[Block] = []
        self.captured_uses: dict[Block, set[int]] = {}
        self.live: dict[int, Block] = {}
        if settings.fraction is not None and settings.fraction < 1:
            self.limit(settings.fraction)

    def limit(self, fraction: float | None) -> None:
        """Allow the process a fraction of the card, or all of it."""
        self.allowed = None if fraction is None else int(fraction * self.driver.total)

    @property
    def collects(self) -> bool:
        """Say whether garbage is collected: a threshold and a fraction are set."""
        return self.allowed is not None and self.settings.gc_threshold > 0

    def round(self, size: int) -> int:
        """Return the bytes of the block that a request of `size` bytes needs."""
        if size < BLOCK:
            return BLOCK
        divisions = self.settings.divisions
        if divisions is not None:
            division = divisions[interval(size)]
            if division > 1 and size > BLOCK * division:
                return next_division(size, division)
        return (size + BLOCK - 1) & -BLOCK

    def segment_size(self, rounded: int) -> int:
        """Return the bytes of the segment that is asked of the driver for such a block."""
        if rounded <= SMALL_REQUEST:
            return SMALL_SEGMENT
        if rounded < LARGE_REQUEST:
            return self.settings.large_segment
        return (rounded + LARGE_STEP - 1) & -LARGE_STEP

    def splits(self, block: Block, rounded: int) -> bool:
        """Say whether what is left of a block goes back to the shelf."""
        pool = block.pool
        if pool.owner is not None and not pool.owner.split:
            return False
        left = block.size - rounded
        if pool.small or self.settings.expandable:
            return left >= BLOCK
        return rounded < self.settings.max_split and left > SMALL_REQUEST

    def merge(self, block: Block, other: Block | None) -> int:
        """Take a free neighbour into a block; return the bytes that it brought."""
        if (
            other is None
            or other.allocated
            or other.events
            or other.uses
            or block.mapped != other.mapped
        ):
            return 0
        if other.mapped:
            other.pool.take(other)
        else:
            other.pool.unhide(other, other.address)
        if block.before is other:
            block.link(other.before, block.after)
            block.address = other.address
        else:
            block.link(block.before, other.after)
        block.size += other.size
        return other.size

    def new_segment(self, pool: Pool, stream: int, size: int) -> Block | None:
        """Ask the driver for a segment; None where the memory is out."""
        address = self.driver.allocate(size, stream, pool.id)
        if address is None:
            return None
        if pool.owner is not None:
            pool.owner.segments += 1
        self.reserved += size
        stats = self.stats
        stats.change_segments(1, pool)
        stats.change_reserved(size, pool)
        if size >= self.settings.max_split:
            stats.single["oversize_segments"].change(1)
        stats.counters["num_device_alloc"] += 1
        block = Block(address, size, pool, stream)
        self.note("segment_alloc", address, size, stream, pool)
        return block

    def release(self, block: Block) -> None:
        """Give a segment that is one free block back to the driver."""
        pool, size = block.pool, block.size
        pool.take(block)
        self.note("segment_free", block.address, size, block.stream, pool)
        self.driver.release(block.address, size, block.stream)
        self.reserved -= size
        if pool.owner is not None:
            pool.owner.segments -= 1
        stats = self.stats
        stats.counters["num_device_free"] += 1
        stats.change_segments(-1, pool)
        stats.change_reserved(-size, pool)
        if size >= self.settings.max_split:
            stats.single["oversize_segments"].change(-1)

    def note(self, action: str, address: int, size: int, stream: int, pool: Pool) -> None:
        """Write an event down where a trace is kept."""
        if self.trace is not None:
            self.trace.add(action, address, size, stream, pool.id)

    def shortage(self, size: int, rounded: int, segment: int) -> Shortage:
        """Describe the card to somebody whose request failed."""
        return Shortage(
            requested=size,
            rounded=rounded,
            segment=segment,
            total=self.driver.total,
            free=self.driver.free,
            allocated=self.stats.allocated,
            reserved=self.reserved,
            allowed=self.allowed,
            in_private_pools=self.in_private_pools,
        )

    def pools(self) -> list[Pool]:
        """Return all pools: the common ones, then the private ones."""
        parts = [self.small, self.large]
        for private in self.private.values():
            parts += [private.small, private.large]
        return parts

    @property
    def in_private_pools(self) -> int:
        """Return the free bytes that private pools hold."""
        return sum(
            block.size
            for pool in self.pools()
            if pool.id != DEFAULT_POOL
            for block in pool.free_blocks()
        )


def next_division(size: int, divisions: int) -> int:
    """Round up to the next of `divisions` steps between two powers of two."""
    if size & (size - 1) == 0:
        return size
    floor = 1 << (size.bit_length() - 1)
    step = floor >> (divisions.bit_length() - 1)
    if step == 0:
        return floor << 1
    return (size + step - 1) & -step
