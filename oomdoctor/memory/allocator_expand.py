"""Expandable segments: one range of addresses per pool and stream that memory is mapped into.

A request maps as many whole pages as it lacks, at the lowest address where free and unmapped space
are enough. What was mapped before the memory ran out stays mapped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.segments import SMALL_SEGMENT
from oomdoctor.memory.allocator_block import Block, Range

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Pool
    from oomdoctor.memory.allocator_state import State


def expand(state: State, pool: Pool, stream: int, rounded: int) -> Block | None:
    """Return a block of at least `rounded` bytes that was taken off the shelf, None at OOM."""
    block = _place(pool, stream, rounded) or _reserve(state, pool, stream)
    if not block.mapped and not _map(state, block, min(block.size, rounded)):
        return None
    while block.size < rounded:
        after = block.after
        if after is None or not _map(state, after, min(rounded - block.size, after.size)):
            return None
        block = after
    pool.take(block)
    return block


def _place(pool: Pool, stream: int, rounded: int) -> Block | None:
    """Return the lowest free or unmapped block with enough free address space behind it."""
    for unmapped in pool.unmapped_by_address(stream):
        before = unmapped.before
        start = before if before is not None and not before.active else unmapped
        found: Block | None = start
        space = 0
        while found is not None and space < rounded and not found.active:
            space += found.size
            found = found.after
        if space >= rounded:
            return start
    return None


def _reserve(state: State, pool: Pool, stream: int) -> Block:
    """Reserve addresses for 1 1/8 of the card, without memory."""
    page = SMALL_SEGMENT if pool.small else state.settings.large_segment
    total = state.driver.total
    size = -(-(total + total // 8) // page) * page
    address = state.driver.reserve(size, page, stream)
    block = Block(address, size, pool, stream, Range(address, size, page))
    block.mapped = False
    pool.hide(block)
    return block


def _map(state: State, block: Block, size: int) -> bool:
    """Put memory behind the first pages of an unmapped block, and join it with free neighbours."""
    within, pool, address = block.range, block.pool, block.address
    if within is None:
        return False
    mapped = -(-size // within.page) * within.page
    if not state.driver.map(address, mapped, within.page, block.stream):
        return False
    pool.unhide(block, address)
    block.mapped = True
    if mapped < block.size:
        rest = Block(address + mapped, block.size - mapped, pool, block.stream, within)
        rest.mapped = False
        rest.link(block, block.after)
        pool.hide(rest)
        block.size = mapped
    state.merge(block, block.before)
    state.merge(block, block.after)
    pool.put(block)
    state.reserved += mapped
    state.stats.change_reserved(mapped, pool)
    state.stats.counters["num_device_alloc"] += 1
    state.note("segment_map", address, mapped, block.stream, pool)
    return True


def unmap(state: State, block: Block) -> None:
    """Take the memory behind the whole pages of a free block back."""
    within, pool = block.range, block.pool
    low, high = whole_pages(block)
    if low >= high:
        return
    pool.take(block)
    if low > block.address:
        front = Block(block.address, low - block.address, pool, block.stream, within)
        front.link(block.before, block)
        pool.put(front)
    if high < block.address + block.size:
        tail = Block(high, block.address + block.size - high, pool, block.stream, within)
        tail.link(block, block.after)
        pool.put(tail)
    block.address, block.size, block.mapped = low, high - low, False
    state.merge(block, block.before)
    state.merge(block, block.after)
    pool.hide(block)
    state.reserved -= high - low
    if pool.owner is not None:
        pool.owner.segments -= 1
    state.stats.change_reserved(low - high, pool)
    state.stats.counters["num_device_free"] += 1
    state.driver.unmap(low, high - low, block.stream)
    state.note("segment_unmap", low, high - low, block.stream, pool)
    if block.whole:
        pool.unhide(block, block.address)


def whole_pages(block: Block) -> tuple[int, int]:
    """Return the first address of the whole pages of a block, and the first one behind them."""
    within = block.range
    if within is None:
        return block.address, block.address
    page, first = within.page, within.address
    low = first + -(-(block.address - first) // page) * page
    high = first + (block.address + block.size - first) // page * page
    return low, high
