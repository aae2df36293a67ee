"""The events of the allocator model, as a snapshot of PyTorch lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import PoolId


class Trace:
    """The latest events, oldest first; `limit` of them are kept. Time is counted in events."""

    def __init__(self, limit: int = 1_000_000) -> None:
        """Start empty."""
        from collections import deque

        self.entries: deque[dict[str, Any]] = deque(maxlen=limit)
        self.count = 0

    def add(self, action: str, address: int, size: int, stream: int, pool: PoolId) -> None:
        """Write an event down. An `oom` has the free bytes of the card in place of an address."""
        self.count += 1
        where = "device_free" if action == "oom" else "addr"
        self.entries.append(
            {
                "action": action,
                where: address,
                "size": size,
                "stream": stream,
                "time_us": self.count,
                "pool_id": pool,
                "frames": [],
            }
        )
