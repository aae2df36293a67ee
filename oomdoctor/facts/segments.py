"""Sizes of the segments that PyTorch's caching allocator asks the driver for.

Constants of c10/cuda/CUDACachingAllocator.cpp (torch 2.13; the same since 1.5).
"""

from __future__ import annotations

BLOCK = 512
SMALL_REQUEST = 1 << 20
SMALL_SEGMENT = 2 << 20
LARGE_REQUEST = 10 << 20
LARGE_SEGMENT = 20 << 20
LARGE_STEP = 2 << 20


def block_bytes(request: int) -> int:
    """Return the bytes that a block for `request` bytes takes: the next multiple of 512."""
    return max(BLOCK, -(-request // BLOCK) * BLOCK)


def segment_bytes(request: int) -> int:
    """Return the bytes of the new segment that a request without a fitting free block causes."""
    size = block_bytes(request)
    if size <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if size < LARGE_REQUEST:
        return LARGE_SEGMENT
    return -(-size // LARGE_STEP) * LARGE_STEP
