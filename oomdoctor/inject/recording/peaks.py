"""The peaks between two looks of ours, while the program sees its own peaks as if we never looked.

torch keeps one peak for each figure, and whoever resets it resets it for all. Here what a reset of
ours takes away is kept and given back to whoever reads the figures, and what the program resets is
kept for us. Both ends of torch are its lowest ones: every figure that Python can ask for comes
through them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

Library: TypeAlias = Any
ALLOCATED, RESERVED = "allocated_bytes", "reserved_bytes"
_ENDS = (
    ("_cuda_memoryStats", "_cuda_resetPeakMemoryStats"),
    ("_accelerator_getDeviceStats", "_accelerator_resetPeakStats"),
)


class OwnPeaks:
    """Peaks of each device that are ours alone."""

    def __init__(self) -> None:
        """Take hold of nothing yet."""
        self.can_reset = False
        self._read: Callable[[int], Library] | None = None
        self._reset: Callable[[int], Library] | None = None
        self._of_program: dict[int, dict[tuple[str, str], int]] = {}
        self._of_ours: dict[int, dict[tuple[str, str], int]] = {}
        self._replaced: list[tuple[str, Library, Library]] = []
        self._owner: Library = None

    def install(self, torch: Library) -> None:
        """Stand between the program and the figures of torch."""
        self._owner = torch._C
        self._read = getattr(torch._C, _ENDS[0][0], None)
        self._reset = getattr(torch._C, _ENDS[0][1], None)
        if self._read is None or self._reset is None:
            return
        for read, reset in _ENDS:
            if hasattr(torch._C, read) and hasattr(torch._C, reset):
                self._replace(read, self._reading)
                self._replace(reset, self._resetting)
        self.can_reset = True

    def remove(self) -> None:
        """Leave torch as it was."""
        for name, original, ours in self._replaced:
            if getattr(self._owner, name, None) is ours:
                setattr(self._owner, name, original)
        self._replaced.clear()
        self.can_reset = False

    def look(self, device: int) -> dict[str, Library]:
        """Return torch's figures of a device, with the peaks since our last reset."""
        if self._read is None:
            return {}
        return _raised(self._read(device), self._of_ours.get(device, {}))

    def reset(self, device: int) -> None:
        """Begin anew for us; the program still sees the higher ones."""
        if self._read is None or self._reset is None or not self.can_reset:
            return
        _keep(self._of_program.setdefault(device, {}), self._read(device))
        self._of_ours.pop(device, None)
        self._reset(device)

    def _replace(self, name: str, make: Callable[[Library], Library]) -> None:
        original = getattr(self._owner, name)
        ours = functools.wraps(original)(make(original))
        setattr(self._owner, name, ours)
        self._replaced.append((name, original, ours))

    def _reading(self, original: Library) -> Library:
        def read(device: int) -> Library:
            return _raised(original(device), self._of_program.get(device, {}))

        return read

    def _resetting(self, original: Library) -> Library:
        def reset(device: int) -> Library:
            if self._read is not None and device in self._of_program:
                _keep(self._of_ours.setdefault(device, {}), self._read(device))
                self._of_program.pop(device, None)
            return original(device)

        return reset


def _keep(kept: dict[tuple[str, str], int], stats: Library) -> None:
    for name, pools in stats.items():
        for pool, figures in pools.items() if isinstance(pools, dict) else ():
            if isinstance(figures, dict) and "peak" in figures:
                kept[name, pool] = max(kept.get((name, pool), 0), figures["peak"])


def _raised(stats: Library, kept: dict[tuple[str, str], int]) -> Library:
    for (name, pool), peak in kept.items():
        figures = stats.get(name, {}).get(pool)
        if figures is not None and figures["peak"] < peak:
            figures["peak"] = peak
    return stats
