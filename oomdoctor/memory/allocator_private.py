"""Private pools of the allocator model: the memory of CUDA graphs and of `torch.cuda.MemPool`.

Requests are diverted to a pool for a while. If a graph is captured meanwhile, no event is looked at
and nothing is given back. What a pool has, it keeps until its last user is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.segments import SMALL_REQUEST
from oomdoctor.memory.allocator_block import PrivatePool
from oomdoctor.memory.allocator_state import State

if TYPE_CHECKING:
    from collections.abc import Collection

    from oomdoctor.memory.allocator_block import Pool, PoolId
    from oomdoctor.memory.allocator_driver import Driver
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.memory.allocator_trace import Trace


class PrivatePools(State):
    """A state with private pools, and with what diverts requests to them."""

    def __init__(
        self, settings: AllocatorSettings, driver: Driver, trace: Trace | None = None
    ) -> None:
        """Start without any."""
        super().__init__(settings, driver, trace)
        self.diverted: list[tuple[PoolId, Collection[int] | None]] = []
        self.capturing: set[PoolId] = set()

    def create_pool(
        self, pool_id: PoolId, *, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        """Make a pool, or count one use more of it.

        With `use_on_oom` its free blocks also meet common requests that the card cannot; with
        `no_split` its blocks are handed out whole.
        """
        found = self.private.get(pool_id)
        if found is not None:
            found.uses += 1
            return
        self.private[pool_id] = PrivatePool(pool_id, use_on_oom=use_on_oom, no_split=no_split)

    def begin_pool(
        self, pool_id: PoolId, streams: Collection[int] | None = None, *, capture: bool = False
    ) -> None:
        """Divert the requests of some streams, or of all, to a pool; say if a graph is captured."""
        if any(pool_id == underway for underway, _ in self.diverted):
            raise ValueError("beginAllocateToPool: already recording to mempool_id")
        self.create_pool(pool_id)
        self.diverted.append((pool_id, streams))
        if capture:
            self.capturing.add(pool_id)

    def end_pool(self, pool_id: PoolId) -> None:
        """Divert no more requests to a pool."""
        for at, (underway, _) in enumerate(self.diverted):
            if underway == pool_id:
                del self.diverted[at]
                self.capturing.discard(pool_id)
                return
        raise ValueError("endAllocatePool: not currently recording to mempool_id")

    def release_pool(self, pool_id: PoolId) -> None:
        """Count one use less of a pool; without any, its free segments may be given back."""
        pool = self.private[pool_id]
        pool.uses -= 1
        if pool.uses == 0:
            self.freeable[pool_id] = pool

    def pool_for(self, rounded: int, stream: int) -> Pool:
        """Return the pool that a request is met from; the latest diversion decides."""
        for pool_id, streams in reversed(self.diverted):
            if streams is None or stream in streams:
                return self.private[pool_id].pool(rounded)
        return self.small if rounded <= SMALL_REQUEST else self.large

    def overflow_pools(self, rounded: int) -> list[Pool]:
        """Return the private pools that help out when the card cannot."""
        return [one.pool(rounded) for one in self.private.values() if one.use_on_oom]
