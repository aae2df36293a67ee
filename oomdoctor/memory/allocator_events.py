"""Blocks that other streams use: freed, they wait for events of those streams.

Events are looked at before every allocation. The model does not know how long the work of a stream
takes: an event is done at the next look, unless its stream is said to be busy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from oomdoctor.memory.allocator_block import Block, PrivatePool
    from oomdoctor.memory.allocator_state import State


def insert_events(state: State, block: Block) -> None:
    """Record an event on each stream that uses a block."""
    uses, block.uses = sorted(block.uses or ()), None
    block.events += len(uses)
    for stream in uses:
        state.waiting.setdefault(stream, deque()).append(block)


def process_events(state: State, busy: Collection[int] = ()) -> None:
    """Let the blocks return whose events are done; a busy stream's are not."""
    _insert_deferred(state)
    for stream in list(state.waiting):
        if stream in busy:
            continue
        for block in state.waiting.pop(stream):
            _count_down(state, block)


def synchronize(state: State, private: PrivatePool | None = None) -> None:
    """Wait for all events, or for those of a private pool's blocks."""
    state.stats.counters["num_sync_all_streams"] += 1
    _insert_deferred(state)
    for stream, blocks in list(state.waiting.items()):
        kept: deque[Block] = deque()
        for block in blocks:
            if private is not None and block.pool.owner is not private:
                kept.append(block)
            else:
                _count_down(state, block)
        if kept:
            state.waiting[stream] = kept
        else:
            del state.waiting[stream]


def _insert_deferred(state: State) -> None:
    """Record the events that could not be recorded while a graph was captured.

    Streams that were named during the capture have finished with it.
    """
    blocks, state.deferred = state.deferred, []
    for block in blocks:
        named = state.captured_uses.pop(block, None)
        if named and block.uses:
            block.uses -= named
        insert_events(state, block)
        if not block.events:
            complete(state, block)


def _count_down(state: State, block: Block) -> None:
    block.events -= 1
    if not block.events:
        complete(state, block)


def hold(state: State, block: Block) -> None:
    """Let a freed block wait for an event that somebody else watches."""
    block.events += 1
    count_waiting(state, block)


def count_waiting(state: State, block: Block) -> None:
    """Count a freed block as still active."""
    flow = state.stats.small if block.pool.small else state.stats.large
    flow.waiting_count += 1
    flow.waiting_bytes += block.size
    flow.waiting_requested += block.requested


def complete(state: State, block: Block) -> None:
    """Put a block whose last event is done back on its shelf."""
    block.events = 0
    stats = state.stats
    if stats.rising:
        stats.settle()
    flow = stats.small if block.pool.small else stats.large
    flow.waiting_count -= 1
    flow.waiting_bytes -= block.size
    flow.waiting_requested -= block.requested
    shelve(state, block)


def shelve(state: State, block: Block) -> None:
    """Join a block with its free neighbours and lay it on its shelf."""
    pool = block.pool
    if state.trace is not None:
        state.trace.add("free_completed", block.address, block.requested, block.stream, pool.id)
    del state.live[block.address]
    before, after = block.before, block.after
    if before is None and after is None:
        pool.put(block)
        return
    size, count = block.size, 1
    if before is not None and not before.allocated and state.merge(block, before):
        count -= 1
    if after is not None and not after.allocated and state.merge(block, after):
        count -= 1
    pool.put(block)
    if block.range is None:
        if block.before is None and block.after is None:
            count -= 1
            size -= block.size
        stats = state.stats
        stats.change_split(stats.small if pool.small else stats.large, count, size)
