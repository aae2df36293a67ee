"""Statistics of the allocator model, by the names of `torch.cuda.memory_stats`.

What rises with every allocation is only counted; a peak can be reached only just before something
is freed, so that is when peaks are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Pool

KINDS = ("all", "small_pool", "large_pool")


class Stat:
    """One figure: its current value, its peak, all that was ever added and taken away."""

    __slots__ = ("allocated", "current", "freed", "peak")

    def __init__(self) -> None:
        """Start at zero."""
        self.current = self.peak = self.allocated = self.freed = 0

    def add(self, amount: int) -> None:
        """Raise the figure."""
        self.current += amount
        self.allocated += amount
        self.peak = max(self.peak, self.current)

    def cut(self, amount: int) -> None:
        """Lower the figure."""
        self.current -= amount
        self.freed += amount

    def values(self) -> dict[str, int]:
        """Return the four values by name."""
        return {
            "allocated": self.allocated,
            "current": self.current,
            "freed": self.freed,
            "peak": self.peak,
        }


class Flow:
    """What is handed out from the small or the large pool, counted as it flows.

    `taken_*` and `freed_*` are totals since the last reset of them, `base_*` what there was then.
    `waiting_*` is what was freed but is still used by other streams.
    """

    __slots__ = (
        "base_bytes",
        "base_count",
        "base_requested",
        "base_waiting",
        "freed_bytes",
        "freed_count",
        "freed_requested",
        "peaks",
        "taken_bytes",
        "taken_count",
        "taken_requested",
        "waiting_bytes",
        "waiting_count",
        "waiting_requested",
    )

    def __init__(self) -> None:
        """Start at zero."""
        self.base_count = self.base_bytes = self.base_requested = 0
        self.taken_count = self.taken_bytes = self.taken_requested = 0
        self.freed_count = self.freed_bytes = self.freed_requested = 0
        self.waiting_count = self.waiting_bytes = self.waiting_requested = 0
        self.base_waiting = (0, 0, 0)
        self.peaks = [0] * 5

    def current(self) -> tuple[int, int, int, int, int]:
        """Return allocations, their bytes, active blocks, their bytes, and the bytes asked for."""
        count = self.base_count + self.taken_count - self.freed_count
        size = self.base_bytes + self.taken_bytes - self.freed_bytes
        requested = self.base_requested + self.taken_requested - self.freed_requested
        return (
            count,
            size,
            count + self.waiting_count,
            size + self.waiting_bytes,
            requested + self.waiting_requested,
        )

    def totals(self) -> tuple[tuple[int, int], ...]:
        """Return what was added and taken away, for the same figures."""
        count, size, requested = self.base_waiting
        return (
            (self.taken_count, self.freed_count),
            (self.taken_bytes, self.freed_bytes),
            (self.taken_count, self.freed_count - self.waiting_count + count),
            (self.taken_bytes, self.freed_bytes - self.waiting_bytes + size),
            (self.taken_requested, self.freed_requested - self.waiting_requested + requested),
        )

    def forget_totals(self) -> None:
        """Begin to count anew what is added and taken away."""
        self.base_count += self.taken_count - self.freed_count
        self.base_bytes += self.taken_bytes - self.freed_bytes
        self.base_requested += self.taken_requested - self.freed_requested
        self.taken_count = self.taken_bytes = self.taken_requested = 0
        self.freed_count = self.freed_bytes = self.freed_requested = 0
        self.base_waiting = (self.waiting_count, self.waiting_bytes, self.waiting_requested)


FLOWS = ("allocation", "allocated_bytes", "active", "active_bytes", "requested_bytes")
STOCKS = ("segment", "reserved_bytes", "inactive_split", "inactive_split_bytes")
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

    __slots__ = ("_peaks", "counters", "large", "rising", "single", "small", "stocks")

    def __init__(self) -> None:
        """Start at zero."""
        self.small = Flow()
        self.large = Flow()
        self.rising = False
        self._peaks = [0] * 5
        self.stocks = {name: tuple(Stat() for _ in KINDS) for name in STOCKS}
        self.single = {name: Stat() for name in SINGLE}
        self.counters = dict.fromkeys(COUNTERS, 0)

    def settle(self) -> None:
        """Look at the peaks before something falls."""
        self.rising = False
        small, large = self.small.current(), self.large.current()
        for at, (one, other) in enumerate(zip(small, large, strict=True)):
            if one > self.small.peaks[at]:
                self.small.peaks[at] = one
            if other > self.large.peaks[at]:
                self.large.peaks[at] = other
            if one + other > self._peaks[at]:
                self._peaks[at] = one + other

    def add(self, name: str, amount: int, *, small: bool) -> None:
        """Raise a figure of segments or split blocks."""
        total, of_small, of_large = self.stocks[name]
        total.add(amount)
        (of_small if small else of_large).add(amount)

    def cut(self, name: str, amount: int, *, small: bool) -> None:
        """Lower such a figure."""
        total, of_small, of_large = self.stocks[name]
        total.cut(amount)
        (of_small if small else of_large).cut(amount)

    def reserve(self, size: int, pool: Pool) -> None:
        """Count memory that the driver gave."""
        for stats in self._reserved(pool):
            stats[0].add(size)
            stats[1 if pool.small else 2].add(size)

    def unreserve(self, size: int, pool: Pool) -> None:
        """Count memory that went back to the driver."""
        for stats in self._reserved(pool):
            stats[0].cut(size)
            stats[1 if pool.small else 2].cut(size)

    def _reserved(self, pool: Pool) -> list[tuple[Stat, ...]]:
        found = [self.stocks["reserved_bytes"]]
        if pool.owner is not None:
            first, second = pool.id
            name = f"reserved_bytes_by_private_pools.{first}_{second}"
            found.append(self.stocks.setdefault(name, tuple(Stat() for _ in KINDS)))
        return found

    def add_split(self, size: int, count: int, *, small: bool) -> None:
        """Count free blocks that became part of a segment."""
        self.add("inactive_split_bytes", size, small=small)
        if count:
            self.add("inactive_split", count, small=small)

    def cut_split(self, size: int, count: int, *, small: bool) -> None:
        """Count free blocks, or bytes of them, that are no longer there."""
        self.cut("inactive_split_bytes", size, small=small)
        if count:
            self.cut("inactive_split", count, small=small)

    @property
    def allocated(self) -> int:
        """Return the bytes of all blocks that somebody has."""
        return self.small.current()[1] + self.large.current()[1]

    @property
    def reserved(self) -> int:
        """Return the bytes of all segments."""
        return self.stocks["reserved_bytes"][0].current

    def reset_peaks(self) -> None:
        """Let all peaks start from what there is now."""
        small, large = self.small.current(), self.large.current()
        self.small.peaks, self.large.peaks = list(small), list(large)
        self._peaks = [one + other for one, other in zip(small, large, strict=True)]
        for stat in [*(one for stats in self.stocks.values() for one in stats), *self._singles()]:
            stat.peak = stat.current

    def reset_accumulated(self) -> None:
        """Let all totals and counters start from zero."""
        self.settle()
        self.small.forget_totals()
        self.large.forget_totals()
        for stat in [*(one for stats in self.stocks.values() for one in stats), *self._singles()]:
            stat.allocated = stat.freed = 0
        self.counters = dict.fromkeys(COUNTERS, 0)

    def _singles(self) -> list[Stat]:
        return list(self.single.values())

    def as_dict(self) -> dict[str, int]:
        """Return the figures by name, such as `allocated_bytes.all.peak`."""
        self.settle()
        found: dict[str, int] = dict(self.counters)
        parts = (("small_pool", self.small), ("large_pool", self.large))
        for at, name in enumerate(FLOWS):
            total = Stat()
            for kind, flow in parts:
                taken, freed = flow.totals()[at]
                current = flow.current()[at]
                total.current += current
                total.allocated += taken
                total.freed += freed
                values = (("allocated", taken), ("current", current), ("freed", freed))
                for word, value in (*values, ("peak", flow.peaks[at])):
                    found[f"{name}.{kind}.{word}"] = value
            total.peak = self._peaks[at]
            found.update({f"{name}.all.{word}": one for word, one in total.values().items()})
        for name, stats in self.stocks.items():
            for kind, stat in zip(KINDS, stats, strict=True):
                found.update({f"{name}.{kind}.{word}": n for word, n in stat.values().items()})
        for name, stat in self.single.items():
            found.update({f"{name}.{word}": value for word, value in stat.values().items()})
        return dict(sorted(found.items()))
