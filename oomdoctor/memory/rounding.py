"""Undo the allocator's rounding: which tensor sizes can stand behind a printed request.

PyTorch prints the segment that it would have taken from the driver: 2 MiB for tensors up to 1 MiB,
20 MiB for tensors below 10 MiB, else the size up to the next 2 MiB. Other allocators print the
tensor itself. Blocks are multiples of 512 bytes.
"""

from __future__ import annotations

from oomdoctor.facts.segments import (
    BLOCK,
    LARGE_REQUEST,
    LARGE_SEGMENT,
    LARGE_STEP,
    SMALL_REQUEST,
    SMALL_SEGMENT,
)
from oomdoctor.record import NamedTuple

CACHING = ("cuda", "hip", "xpu", "npu", "musa")


class Interval(NamedTuple):
    """Tensor sizes in bytes, both ends included, and what was undone."""

    low: int
    high: int
    why: str

    def holds(self, size: int) -> bool:
        """Say whether a tensor of `size` bytes prints as the request."""
        return self.low <= size <= self.high


def tensors(
    request: int, *, slack: float, expandable: bool = False, caching: bool = True
) -> tuple[Interval, ...]:
    """Return the sizes of tensors whose request prints as `request` +- `slack` bytes.

    With expandable segments, versions differ in whether the segment or the block is printed, so
    both readings are given; a size that is no segment can only be a block.
    """
    low, high = max(1, int(request - slack)), int(request + slack)
    block = Interval(max(1, low - BLOCK + 1), high, "up to the next 512 bytes")
    if not caching:
        return (Interval(low, high, "as printed"),)
    segments = _by_segment(low, high)
    return (*segments, block) if expandable or not segments else segments


def _by_segment(low: int, high: int) -> tuple[Interval, ...]:
    """Return the tensors behind each segment size in low..high."""
    found: list[Interval] = []
    if low <= SMALL_SEGMENT <= high:
        found.append(Interval(1, SMALL_REQUEST, "a 2 MiB segment: any tensor up to 1 MiB"))
    if low <= LARGE_SEGMENT <= high:
        below = LARGE_REQUEST - BLOCK
        found.append(
            Interval(SMALL_REQUEST + 1, below, "a 20 MiB segment: any tensor of 1 to 10 MiB")
        )
    first = max(LARGE_REQUEST, -(-low // LARGE_STEP) * LARGE_STEP)
    last = high // LARGE_STEP * LARGE_STEP
    if first <= last:
        bottom = max(LARGE_REQUEST - BLOCK + 1, first - LARGE_STEP + 1)
        found.append(Interval(bottom, last, "up to the next 2 MiB"))
    return tuple(found)
