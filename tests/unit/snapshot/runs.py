"""Runs of the allocator model that are recorded as PyTorch records its own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.memory.allocator_snapshot import snapshot
from oomdoctor.memory.allocator_trace import Trace

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block

MIB = 1 << 20
POOL = (0, 1)


def dice_of(seed: int | str) -> random.Random:
    """Return made-up chance that is the same each time."""
    return random.Random(seed)  # noqa: S311 - made-up operations


def recorded(
    settings: str = "",
    *,
    steps: int = 400,
    kept: int = 100_000,
    seed: int = 1,
    streams: int = 1,
    pools: bool = False,
    drops: bool = True,
) -> dict[str, Any]:
    """Return the snapshot of a random run, of which the last `kept` events were recorded."""
    dice = dice_of(seed)
    cache = Allocator(settings, driver=Card(600 * MIB, total=1 << 36), trace=Trace(kept))
    blocks: list[Block] = []
    pool = POOL
    for _ in range(steps):
        share = dice.random()
        if share < 0.02:
            cache.empty_cache()
        elif pools and share < 0.06:
            pool = _switch(cache, pool, drop=drops and dice.random() < 0.5)
        elif streams > 1 and blocks and share < 0.12:
            cache.record_stream(dice.choice(blocks), dice.randrange(streams))
        elif not blocks or share < 0.6:
            try:
                size = int(2 ** dice.uniform(6, dice.choice((18, 24, 27))))
                blocks.append(cache.alloc(size, dice.randrange(streams)))
            except OutOfMemoryError:
                continue
        else:
            cache.free(blocks.pop(dice.randrange(len(blocks))))
    return snapshot(cache)


def _switch(cache: Allocator, pool: tuple[int, int], *, drop: bool) -> tuple[int, int]:
    """Begin or end to allocate from a private pool; return the pool for the next time."""
    if not cache.diverted:
        cache.begin_pool(pool)
        return pool
    cache.end_pool(pool)
    if not drop:
        return pool
    for _ in range(cache.private[pool].uses):
        cache.release_pool(pool)
    return (0, pool[1] + 1)
