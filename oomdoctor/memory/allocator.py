"""A model of PyTorch's caching allocator (torch 2.13, native backend), for one card.

    allocator = Allocator("expandable_segments:True", driver=Card(24 << 30))
    block = allocator.alloc(3_000_000)
    allocator.free(block)
    allocator.memory_stats()["reserved_bytes.all.peak"]

It makes every decision as c10/cuda/CUDACachingAllocator.cpp does: how a request is rounded, which
free block it gets, what is split, joined, collected and given back, and in which order the ways out
are tried when there is no memory. It was compared with recorded runs of the C++ code, addresses
included. What it does not know is time: an event of another stream is done at the next look, unless
the stream is `busy`. `graph_capture_record_stream_reuse` needs the captured graph and is without
effect.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from oomdoctor.facts.segments import BLOCK, SMALL_REQUEST
from oomdoctor.memory import allocator_release as ways_out
from oomdoctor.memory.allocator_block import DEFAULT_POOL, Block
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_events import (
    count_waiting,
    insert_events,
    process_events,
    shelve,
)
from oomdoctor.memory.allocator_expand import expand
from oomdoctor.memory.allocator_fit import best_fit
from oomdoctor.memory.allocator_oom import OutOfMemoryError, RejectedError
from oomdoctor.memory.allocator_private import PrivatePools
from oomdoctor.memory.allocator_settings import (
    UNLIMITED,
    AllocatorSettings,
    read_settings,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.memory.allocator_block import Pool, PoolId
    from oomdoctor.memory.allocator_driver import Driver
    from oomdoctor.memory.allocator_flow import Flow
    from oomdoctor.memory.allocator_trace import Trace

LARGEST = 1 << 60
_ADDRESS_BITS = 64


class Allocator(PrivatePools):
    """The caching allocator of one card. Streams are numbers, 0 is the default one.

    `callbacks` are asked for memory on a miss and say whether they freed some. `busy` are the
    streams whose events are not done yet.
    """

    def __init__(
        self,
        settings: AllocatorSettings | str = "",
        *,
        driver: Driver | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Start with an empty cache. Settings may be given as the text of the variable."""
        read = read_settings(settings) if isinstance(settings, str) else settings
        super().__init__(read, driver or Card(), trace)
        self.callbacks: list[Callable[[], bool]] = []
        self.busy: set[int] = set()
        self._plain = True
        self.configure(read)

    def configure(self, settings: AllocatorSettings | str) -> None:
        """Change the settings of a running process; blocks stay as they are."""
        read = read_settings(settings) if isinstance(settings, str) else settings
        was_expandable = self.settings.expandable
        self.settings = read
        self._plain = (
            self._plain
            and not was_expandable
            and not read.expandable
            and read.max_split >= UNLIMITED
            and read.gc_threshold == 0
        )
        self._quick = self._plain and read.caching and read.divisions is None

    def set_memory_fraction(self, fraction: float) -> None:
        """Allow this process a fraction of the card."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        self.limit(fraction)

    def alloc(self, size: int, stream: int = 0) -> Block:
        """Return a block for `size` bytes on a stream; OutOfMemoryError where there is none."""
        if (self.waiting or self.deferred) and not self.capturing:
            process_events(self, self.busy)
        if self._quick and BLOCK <= size < LARGEST and not self.diverted:
            rounded = (size + BLOCK - 1) & -BLOCK
            pool = self.small if rounded <= SMALL_REQUEST else self.large
        elif size >= LARGEST:
            raise OutOfMemoryError(self.shortage(size, size, size))
        elif not self.settings.caching:
            return self._uncached(size, stream)
        else:
            rounded = self.round(size)
            pool = self.pool_for(rounded, stream)
        block = self._find(pool, stream, rounded) or self._miss(pool, stream, rounded, size)
        stats = self.stats
        flow = stats.small if block.pool.small else stats.large
        if block.size != rounded and self.splits(block, rounded):
            block = self._split(block, rounded, flow)
        elif (block.before is not None or block.after is not None) and block.range is None:
            stats.change_split(flow, -1, -block.size)
        block.allocated = True
        block.requested = size
        self.live[block.address] = block
        flow.count += 1
        flow.bytes += block.size
        flow.requested += size
        stats.rising = True
        if not self._plain and block.size >= self.settings.max_split:
            stats.single["oversize_allocations"].change(1)
        if self.trace is not None:
            self.trace.add("alloc", block.address, size, block.stream, block.pool.id)
        return block

    def free(self, block: Block) -> None:
        """Take a block back; where other streams use it, it waits for their events."""
        if not self.settings.caching:
            block.allocated = False
            self.driver.release(block.address, block.size, block.stream)
            return
        self.request_free(block)
        if not block.uses:
            shelve(self, block)
            return
        count_waiting(self, block)
        if self.capturing:
            self.deferred.append(block)
        else:
            insert_events(self, block)

    def request_free(self, block: Block) -> None:
        """Take a block from its owner, but do not hand it out again yet."""
        if not block.allocated:
            raise ValueError(f"{block!r} is not allocated")
        block.allocated = False
        stats = self.stats
        if stats.rising:
            stats.settle()
        flow = stats.small if block.pool.small else stats.large
        size, requested = block.size, block.requested
        flow.count -= 1
        flow.bytes -= size
        flow.requested -= requested
        flow.freed_count += 1
        flow.freed_bytes += size
        flow.freed_requested += requested
        if self.trace is not None:
            self.note("free_requested", block.address, block.requested, block.stream, block.pool)
        if not self._plain and block.size >= self.settings.max_split:
            stats.single["oversize_allocations"].change(-1)

    def record_stream(self, block: Block, stream: int) -> None:
        """Say that another stream uses a block; its own stream needs no event."""
        if stream == block.stream:
            return
        if block.uses is None:
            block.uses = set()
        if self.capturing:
            self.captured_uses.setdefault(block, set()).add(stream)
        block.uses.add(stream)

    def empty_cache(self, pool_id: PoolId = DEFAULT_POOL) -> None:
        """Give all segments that nobody uses a part of back to the driver."""
        ways_out.release_cached(self, pool_id, capturing=bool(self.capturing))

    def memory_stats(self) -> dict[str, int]:
        """Return the figures by the names of `torch.cuda.memory_stats`."""
        return self.stats.as_dict() | {"max_split_size": signed(self.settings.max_split)}

    @property
    def allocated(self) -> int:
        """Return the bytes of all blocks that somebody has."""
        return self.stats.allocated

    def _find(self, pool: Pool, stream: int, rounded: int) -> Block | None:
        """Take the best free block off its shelf."""
        shelf = pool.shelves.get(stream)
        if self._plain:
            if shelf is None:
                return None
            keys = shelf.keys
            at = bisect_left(keys, rounded << _ADDRESS_BITS)
            if at == len(keys):
                return None
            return shelf.by_key.pop(keys.pop(at))
        if self.collects:
            pool.calls += 1
        if shelf is None:
            return None
        found = best_fit(shelf, rounded, self.settings)
        if found is not None:
            pool.take(found)
        return found

    def _split(self, block: Block, rounded: int, flow: Flow) -> Block:
        """Cut the front of a block off and lay the rest on its shelf."""
        pool, before = block.pool, block.before
        front = Block(block.address, rounded, pool, block.stream, block.range)
        front.before, front.after = before, block
        whole = before is None and block.after is None
        if before is not None:
            before.after = front
        block.before = front
        block.address += rounded
        block.size -= rounded
        pool.put(block)
        if block.range is not None:
            return front
        if whole:
            self.stats.change_split(flow, 1, block.size)
        else:
            self.stats.change_split(flow, 0, -rounded)
        return front

    def _miss(self, pool: Pool, stream: int, rounded: int, size: int) -> Block:
        """Get new memory, in the order in which torch tries the ways to it."""
        freed = [callback() for callback in self.callbacks]
        if any(freed):
            found = self._find(pool, stream, rounded)
            if found is not None:
                return found
        if self.collects:
            ways_out.collect_garbage(self)
        block = self._obtain(pool, stream, rounded, size)
        if block is None and pool.owner is None:
            block = self._overflow(stream, rounded)
        if block is None and ways_out.release_available(self, pool, stream, rounded):
            block = self._obtain(pool, stream, rounded, size)
        if block is None and not self.capturing:
            ways_out.release_cached(self)
            self.stats.counters["num_alloc_retries"] += 1
            block = self._obtain(pool, stream, rounded, size)
        if block is None:
            self.note("oom", self.driver.free, rounded, stream, pool)
            self.stats.counters["num_ooms"] += 1
            raise OutOfMemoryError(self.shortage(size, rounded, self.segment_size(rounded)))
        return block

    def _obtain(self, pool: Pool, stream: int, rounded: int, size: int) -> Block | None:
        """Ask the driver once."""
        segment = self.segment_size(rounded)
        if self.allowed is not None and self.reserved + segment > self.allowed:
            return None
        if self.settings.throw_on_oom and self.reserved + segment > self.driver.total:
            self.stats.counters["num_oom_rejections"] += 1
            raise RejectedError(self.shortage(size, rounded, segment))
        if not self.settings.expandable:
            return self.new_segment(pool, stream, segment)
        block = expand(self, pool, stream, rounded)
        if block is not None and pool.owner is not None:
            pool.owner.segments += 1
        return block

    def _overflow(self, stream: int, rounded: int) -> Block | None:
        """Look into the private pools that help out."""
        for pool in self.overflow_pools(rounded):
            found = self._find(pool, stream, rounded)
            if found is not None:
                return found
        return None

    def _uncached(self, size: int, stream: int) -> Block:
        """Ask the driver for every request; it counts nowhere, as in torch."""
        address = self.driver.allocate(size, stream, DEFAULT_POOL)
        if address is None:
            raise OutOfMemoryError(self.shortage(size, size, size))
        block = Block(address, size, self.large, stream)
        block.allocated, block.requested = True, size
        return block
