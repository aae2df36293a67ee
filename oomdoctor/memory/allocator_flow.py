"""What flows through a pool of the allocator model: allocations, their bytes, free pieces."""

from __future__ import annotations

from oomdoctor.record import NamedTuple


class Values(NamedTuple):
    """Current value, peak, and all that was ever added and taken away."""

    current: int
    peak: int
    allocated: int
    freed: int


class Stat:
    """One figure that changes rarely."""

    __slots__ = ("allocated", "current", "freed", "peak")

    def __init__(self) -> None:
        """Start at zero."""
        self.current = self.peak = self.allocated = self.freed = 0

    def change(self, amount: int) -> None:
        """Raise or lower the figure."""
        self.current += amount
        if amount < 0:
            self.freed -= amount
            return
        self.allocated += amount
        if self.current > self.peak:
            self.peak = self.current

    def values(self) -> dict[str, int]:
        """Return the four values by name."""
        return {name: getattr(self, name) for name in Values._fields}


class Flow:
    """Figures of one pool. What was freed but is still used by other streams is `waiting`.

    `count`, `bytes` and `requested` are what somebody has; `freed_*` what was freed since the last
    reset, `base_*` what there was then. `split_*` are free blocks that are part of a segment.
    """

    SUMMED = (
        "base_bytes",
        "base_count",
        "base_requested",
        "base_split_bytes",
        "base_split_count",
        "base_waiting_bytes",
        "base_waiting_count",
        "base_waiting_requested",
        "bytes",
        "count",
        "freed_bytes",
        "freed_count",
        "freed_requested",
        "requested",
        "split_bytes",
        "split_bytes_cut",
        "split_count",
        "split_count_cut",
        "waiting_bytes",
        "waiting_count",
        "waiting_requested",
    )
    PEAKS = (
        "peak_active_bytes",
        "peak_active_count",
        "peak_bytes",
        "peak_count",
        "peak_requested",
        "peak_split_bytes",
        "peak_split_count",
    )
    __slots__ = (*SUMMED, *PEAKS)

    def __init__(self) -> None:
        """Start at zero."""
        self.count = self.bytes = self.requested = 0
        self.freed_count = self.freed_bytes = self.freed_requested = 0
        self.waiting_count = self.waiting_bytes = self.waiting_requested = 0
        self.split_count = self.split_bytes = self.split_count_cut = self.split_bytes_cut = 0
        self.base_count = self.base_bytes = self.base_requested = 0
        self.base_waiting_count = self.base_waiting_bytes = self.base_waiting_requested = 0
        self.base_split_count = self.base_split_bytes = 0
        self.peak_count = self.peak_bytes = self.peak_requested = 0
        self.peak_active_count = self.peak_active_bytes = 0
        self.peak_split_count = self.peak_split_bytes = 0

    def note_peaks(self, count: int, size: int, requested: int) -> None:
        """Raise the peaks to these figures.

        Without waiting blocks the active figures are the same; then their peaks are left behind,
        and taken as at least the others when they are read.
        """
        if count > self.peak_count:
            self.peak_count = count
        if size > self.peak_bytes:
            self.peak_bytes = size
        if self.waiting_count:
            self.peak_active_count = max(self.peak_active_count, count + self.waiting_count)
            self.peak_active_bytes = max(self.peak_active_bytes, size + self.waiting_bytes)
            requested += self.waiting_requested
        if requested > self.peak_requested:
            self.peak_requested = requested

    def reset_peaks(self) -> None:
        """Let the peaks start from what there is."""
        self.peak_count, self.peak_bytes = self.count, self.bytes
        self.peak_requested = self.requested + self.waiting_requested
        self.peak_active_count = self.count + self.waiting_count
        self.peak_active_bytes = self.bytes + self.waiting_bytes
        self.peak_split_count, self.peak_split_bytes = self.split_count, self.split_bytes

    def forget_totals(self) -> None:
        """Begin to count anew what is added and taken away."""
        self.base_count, self.base_bytes = self.count, self.bytes
        self.base_requested = self.requested
        self.base_split_count, self.base_split_bytes = self.split_count, self.split_bytes
        self.base_waiting_count, self.base_waiting_bytes = self.waiting_count, self.waiting_bytes
        self.base_waiting_requested = self.waiting_requested
        self.freed_count = self.freed_bytes = self.freed_requested = 0
        self.split_count_cut = self.split_bytes_cut = 0

    def stats(self) -> dict[str, Values]:
        """Return the figures by the names of PyTorch."""
        count, size = self.waiting_count, self.waiting_bytes
        active_freed = self.freed_count - count + self.base_waiting_count
        active_bytes_freed = self.freed_bytes - size + self.base_waiting_bytes
        asked = self.requested + self.waiting_requested
        asked_freed = self.freed_requested - self.waiting_requested + self.base_waiting_requested
        taken = self.count + self.freed_count - self.base_count
        taken_bytes = self.bytes + self.freed_bytes - self.base_bytes
        taken_requested = self.requested + self.freed_requested - self.base_requested
        split = self.split_count + self.split_count_cut - self.base_split_count
        split_bytes = self.split_bytes + self.split_bytes_cut - self.base_split_bytes
        return {
            "allocation": Values(self.count, self.peak_count, taken, self.freed_count),
            "allocated_bytes": Values(self.bytes, self.peak_bytes, taken_bytes, self.freed_bytes),
            "active": Values(
                self.count + count,
                max(self.peak_active_count, self.peak_count),
                taken,
                active_freed,
            ),
            "active_bytes": Values(
                self.bytes + size,
                max(self.peak_active_bytes, self.peak_bytes),
                taken_bytes,
                active_bytes_freed,
            ),
            "requested_bytes": Values(asked, self.peak_requested, taken_requested, asked_freed),
            "inactive_split": Values(
                self.split_count, self.peak_split_count, split, self.split_count_cut
            ),
            "inactive_split_bytes": Values(
                self.split_bytes, self.peak_split_bytes, split_bytes, self.split_bytes_cut
            ),
        }
