"""Builds the allocator model as it was when a trace began.

Of expandable segments there is one range of addresses per pool and stream, as there is unless the
addresses are used up; they are 1 1/8 of the card.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from oomdoctor.facts.segments import SMALL_REQUEST, SMALL_SEGMENT
from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_block import DEFAULT_POOL, Block, Pool, Range
from oomdoctor.memory.allocator_events import hold
from oomdoctor.snapshot.driver import RANGE_BYTES

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_driver import Driver
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.snapshot.rewind import Beginning, Stretch

FAR_LIMIT = 1 << 62


def build(beginning: Beginning, settings: AllocatorSettings, driver: Driver) -> Allocator:
    """Return an allocator with the segments and blocks of the beginning."""
    allocator = Allocator(settings, driver=driver)
    if settings.gc_threshold > 0:  # so that ages are counted; the trace says when it collects
        allocator.allowed = FAR_LIMIT
    _Building(allocator, beginning).build()
    allocator.stats.reset_peaks()
    return allocator


class _Building:
    """Puts blocks into segments."""

    def __init__(self, allocator: Allocator, beginning: Beginning) -> None:
        self.allocator = allocator
        self.beginning = beginning
        self.held = beginning.held
        self.addresses = sorted(self.held)
        self.ends: dict[tuple[Pool, int], Block] = {}

    def build(self) -> None:
        for stretch in self.beginning.stretches:
            pool = self._pool(stretch)
            within, before = None, None
            if stretch.expandable:
                within, before = self._range(stretch, pool)
            blocks = self._blocks(stretch, pool, within)
            for block in blocks:
                block.link(before, None)
                before = block
            if within is not None and before is not None:
                self._tail(before, within, stretch.end)
            self._count(stretch, blocks)

    def _pool(self, stretch: Stretch) -> Pool:
        allocator = self.allocator
        if stretch.pool == DEFAULT_POOL:
            return allocator.small if stretch.small else allocator.large
        if stretch.pool not in allocator.private:
            allocator.create_pool(stretch.pool)
        private = allocator.private[stretch.pool]
        private.segments += 1
        return private.small if stretch.small else private.large

    def _blocks(self, stretch: Stretch, pool: Pool, within: Range | None) -> list[Block]:
        """Return the blocks of a stretch: those that were held, and free ones between them."""
        blocks, at = [], stretch.address
        first = bisect_left(self.addresses, stretch.address)
        last = bisect_left(self.addresses, stretch.end)
        for number in range(first, last):
            address = self.addresses[number]
            if address < at:
                continue
            follows = self.addresses[number + 1] if number + 1 < last else stretch.end
            if address > at:
                blocks.append(Block(at, address - at, pool, stretch.stream, within))
            size = self._size(address, follows, stretch)
            block = Block(address, size, pool, stretch.stream, within)
            block.allocated, block.requested = True, self.held[address].requested
            blocks.append(block)
            at = address + size
        if at < stretch.end:
            blocks.append(Block(at, stretch.end - at, pool, stretch.stream, within))
        return blocks

    def _size(self, address: int, follows: int, stretch: Stretch) -> int:
        """Return the size of a held block; what could not have been split off is its own."""
        one = self.held[address]
        room = follows - address
        if one.size is not None:
            return min(one.size, room)
        if one.end is not None:
            return min(one.end - address, room)
        settings = self.allocator.settings
        rounded = min(self.allocator.round(one.requested), room)
        if stretch.small or stretch.expandable:
            return rounded
        whole = rounded >= settings.max_split and room == stretch.size
        return room if whole or room - rounded <= SMALL_REQUEST else rounded

    def _range(self, stretch: Stretch, pool: Pool) -> tuple[Range, Block | None]:
        """Return the range of an expandable stretch, and the unmapped block before it."""
        end = self.ends.get((pool, stretch.stream))
        if end is not None and end.range is not None:
            pool.unhide(end, end.address)
            gap = stretch.address - end.address
            end.size = gap
            if gap > 0:
                pool.hide(end)
                return end.range, end
            return end.range, end.before
        page = SMALL_SEGMENT if stretch.small else self.allocator.settings.large_segment
        start = self._start(stretch)
        within = Range(start, RANGE_BYTES, page)
        if start == stretch.address:
            return within, None
        front = Block(start, stretch.address - start, pool, stretch.stream, within)
        front.mapped = False
        pool.hide(front)
        return within, front

    def _start(self, stretch: Stretch) -> int:
        """Return where a range begins: at its first pages, or at those later mapped before them."""
        start = stretch.address
        mapped = self.beginning.mapped_later
        while (below := mapped.get((start, stretch.stream), start)) < start:
            start = below
        return start

    def _tail(self, before: Block, within: Range, end: int) -> None:
        """Put the addresses without memory behind a stretch."""
        size = max(within.address + within.size - end, within.page)
        tail = Block(end, size, before.pool, before.stream, within)
        tail.mapped = False
        tail.link(before, None)
        before.pool.hide(tail)
        self.ends[before.pool, before.stream] = tail

    def _count(self, stretch: Stretch, blocks: list[Block]) -> None:
        """Count the stretch and its blocks, and lay the free ones on their shelves."""
        allocator = self.allocator
        allocator.reserved += stretch.size
        allocator.stats.change_reserved(stretch.size, blocks[0].pool)
        if not stretch.expandable:
            allocator.stats.change_segments(1, blocks[0].pool)
        flow = allocator.stats.small if stretch.small else allocator.stats.large
        for block in blocks:
            if not block.allocated:
                block.pool.put(block)
                if not stretch.expandable and not block.whole:
                    allocator.stats.change_split(flow, 1, block.size)
                continue
            allocator.live[block.address] = block
            flow.count += 1
            flow.bytes += block.size
            flow.requested += block.requested
            if self.held[block.address].waiting:
                allocator.request_free(block)
                hold(allocator, block)
