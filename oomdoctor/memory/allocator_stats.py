"""Statistics of the allocator model, by the names of `torch.cuda.memory_stats`.

A peak can be reached only just before something is freed, so that is when peaks of what is handed
out are looked at: a run of allocations costs nothing but the counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.allocator_flow import Flow, Stat

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Pool

KINDS = ("all", "small_pool", "large_pool")
SEGMENT, RESERVED = "segment", "reserved_bytes"
BY_PRIVATE_POOL = "reserved_bytes_by_private_pools.{}_{}"
SINGLE = ("oversize_allocations", "oversize_segments")
COUNTERS = (
    "num_alloc_retries",
    "num_ooms",
    "num_oom_rejections",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
)


class Statistics:
    """All figures of one card."""

    __slots__ = ("both", "counters", "large", "rising", "single", "small", "stocks")

    def __init__(self) -> None:
        """Start at zero."""
        self.small = Flow()
        self.large = Flow()
        self.both = Flow()
        self.rising = False
        self.stocks = {name: tuple(Stat() for _ in KINDS) for name in (SEGMENT, RESERVED)}
        self.single = {name: Stat() for name in SINGLE}
        self.counters = dict.fromkeys(COUNTERS, 0)

    def settle(self) -> None:
        """Look at the peaks before something falls."""
        self.rising = False
        small, large, both = self.small, self.large, self.both
        small.note_peaks(small.count, small.bytes, small.requested)
        large.note_peaks(large.count, large.bytes, large.requested)
        both.waiting_count = small.waiting_count + large.waiting_count
        both.waiting_bytes = small.waiting_bytes + large.waiting_bytes
        both.waiting_requested = small.waiting_requested + large.waiting_requested
        both.note_peaks(
            small.count + large.count,
            small.bytes + large.bytes,
            small.requested + large.requested,
        )

    def change_split(self, flow: Flow, count: int, size: int) -> None:
        """Count free blocks that are part of a segment, and their bytes."""
        both = self.both
        if size < 0:
            flow.split_bytes += size
            both.split_bytes += size
            flow.split_bytes_cut -= size
        elif size:
            flow.split_bytes = now = flow.split_bytes + size
            if now > flow.peak_split_bytes:
                flow.peak_split_bytes = now
            both.split_bytes = now = both.split_bytes + size
            if now > both.peak_split_bytes:
                both.peak_split_bytes = now
        if not count:
            return
        flow.split_count += count
        both.split_count += count
        if count < 0:
            flow.split_count_cut -= count
            return
        if flow.split_count > flow.peak_split_count:
            flow.peak_split_count = flow.split_count
        if both.split_count > both.peak_split_count:
            both.peak_split_count = both.split_count

    def change_segments(self, count: int, pool: Pool) -> None:
        """Count segments that came or went."""
        stats = self.stocks[SEGMENT]
        stats[0].change(count)
        stats[1 if pool.small else 2].change(count)

    def change_reserved(self, size: int, pool: Pool) -> None:
        """Count memory that the driver gave or got back."""
        part = 1 if pool.small else 2
        stats = self.stocks[RESERVED]
        stats[0].change(size)
        stats[part].change(size)
        if pool.owner is not None:
            name = BY_PRIVATE_POOL.format(*pool.id)
            stats = self.stocks.setdefault(name, tuple(Stat() for _ in KINDS))
            stats[0].change(size)
            stats[part].change(size)

    @property
    def allocated(self) -> int:
        """Return the bytes of all blocks that somebody has."""
        return self.small.bytes + self.large.bytes

    def _stats(self) -> list[Stat]:
        stocks = [one for stats in self.stocks.values() for one in stats]
        return [*stocks, *self.single.values()]

    def reset_peaks(self) -> None:
        """Let all peaks start from what there is now."""
        self.settle()
        self._sum()
        for flow in (self.small, self.large, self.both):
            flow.reset_peaks()
        for stat in self._stats():
            stat.peak = stat.current

    def reset_accumulated(self) -> None:
        """Let all totals and counters start from zero."""
        self.settle()
        self.small.forget_totals()
        self.large.forget_totals()
        for stat in self._stats():
            stat.allocated = stat.freed = 0
        self.counters = dict.fromkeys(COUNTERS, 0)

    def _sum(self) -> None:
        """Let `both` be the sum of the pools; its peaks are its own."""
        for name in Flow.SUMMED:
            setattr(self.both, name, getattr(self.small, name) + getattr(self.large, name))

    def as_dict(self) -> dict[str, int]:
        """Return the figures by name, such as `allocated_bytes.all.peak`."""
        self.settle()
        self._sum()
        found: dict[str, int] = dict(self.counters)
        for kind, flow in zip(KINDS, (self.both, self.small, self.large), strict=True):
            for name, values in flow.stats().items():
                found.update({f"{name}.{kind}.{word}": n for word, n in values._asdict().items()})
        for name, stats in self.stocks.items():
            for kind, stat in zip(KINDS, stats, strict=True):
                found.update({f"{name}.{kind}.{word}": n for word, n in stat.values().items()})
        for name, stat in self.single.items():
            found.update({f"{name}.{word}": value for word, value in stat.values().items()})
        return dict(sorted(found.items()))
