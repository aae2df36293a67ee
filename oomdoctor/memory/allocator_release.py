"""How the allocator model gives memory back to the driver, in the order in which PyTorch tries it.

First, where a threshold and a fraction are set, old free segments (garbage collection). Then, once
the driver has refused, as many oversize blocks as the request needs (`max_split_size_mb`), and then
all segments that nobody uses a part of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.allocator_block import DEFAULT_POOL
from oomdoctor.memory.allocator_events import synchronize
from oomdoctor.memory.allocator_expand import unmap, whole_pages
from oomdoctor.memory.allocator_settings import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.memory.allocator_block import Block, Pool, PoolId
    from oomdoctor.memory.allocator_state import State


def collect_garbage(state: State) -> None:
    """Give old free segments back until reserved memory is below the threshold."""
    if state.allowed is None:
        return
    target = state.reserved - int(state.settings.gc_threshold * state.allowed)
    for old in garbage(state):
        if target <= 0:
            return
        for block in old:
            target -= block.size
            state.release(block)


def garbage(state: State) -> Iterator[list[Block]]:
    """Go through the free segments, the oldest first, several at a time.

    Those that waited at least as long as the mean of all, counted in searches, then those at least
    as old as the mean of the rest, and so on. Expandable blocks count in the mean, but stay.
    """
    calls = state.large.calls
    left = [block for block in state.large.free_blocks() if block.whole]
    while left:
        mean = sum(calls - block.age for block in left) / len(left)
        old = [one for one in left if one.range is None and calls - one.age >= mean]
        if not old:
            return
        left = [one for one in left if one.range is not None or calls - one.age < mean]
        yield old


def release_available(state: State, pool: Pool, stream: int, rounded: int) -> bool:
    """Give oversize blocks of a stream back, the first large enough or the largest ones."""
    limit = state.settings.max_split
    if limit >= UNLIMITED:
        return False
    wanted = max(rounded, limit)
    shelf = pool.shelf(stream)
    at = shelf.index(wanted)
    if at < len(shelf) and shelf.at(at).range is None:
        state.release(shelf.at(at))
        return True
    released = 0
    for block in reversed(shelf.blocks()[:at]):
        if released >= wanted or block.size < limit:
            break
        if block.range is None:
            released += block.size
            state.release(block)
    return released >= wanted


def release_cached(
    state: State, pool_id: PoolId = DEFAULT_POOL, *, capturing: bool = False
) -> None:
    """Give all segments back that are one free block, and whole free pages of expandable ones."""
    if pool_id == DEFAULT_POOL and not capturing:
        synchronize(state)
        _release_pool(state, state.large)
        _release_pool(state, state.small)
    for private in list(state.freeable.values()):
        if pool_id != DEFAULT_POOL:
            if private.id != pool_id:
                continue
            synchronize(state, private)
        _release_pool(state, private.small)
        _release_pool(state, private.large)
        if private.segments == 0:
            del state.private[private.id]
            del state.freeable[private.id]


def _release_pool(state: State, pool: Pool) -> None:
    for block in releasable(pool):
        state.release(block)
    for block in [one for one in pool.free_blocks() if one.range is not None]:
        unmap(state, block)


def releasable(pool: Pool) -> list[Block]:
    """Return the segments of a pool that nobody uses a part of, in the order they would go."""
    return [block for block in pool.free_blocks() if block.range is None and block.whole]


def plan(state: State, pool_id: PoolId = DEFAULT_POOL) -> list[tuple[int, int]]:
    """Return address and size of all that `release_cached` would give back, in its order."""
    everything = pool_id == DEFAULT_POOL
    pools = [state.large, state.small] if everything else []
    for private in state.freeable.values():
        if everything or private.id == pool_id:
            pools += [private.small, private.large]
    found = []
    for pool in pools:
        found += [(block.address, block.size) for block in releasable(pool)]
        pages = (whole_pages(block) for block in pool.free_blocks() if block.range is not None)
        found += [(low, high - low) for low, high in pages if high > low]
    return found
