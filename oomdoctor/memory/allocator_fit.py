"""Which free block a request gets: the smallest that is large enough, at the lowest address.

An expandable block counts with the addresses behind it that it could grow into. With
`max_split_size_mb` oversize blocks are kept for oversize requests, and those take none that is much
larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block, Shelf
    from oomdoctor.memory.allocator_settings import AllocatorSettings


def best_fit(shelf: Shelf, rounded: int, settings: AllocatorSettings) -> Block | None:
    """Return the free block that a request gets, None where it needs new memory."""
    at, end = shelf.index(rounded), len(shelf)
    if at == end:
        return None
    block = shelf.at(at)
    if block.range is not None and settings.expandable:
        while block.range is not None and at + 1 < end:
            at += 1
            other = shelf.at(at)
            if other.growable >= block.growable:
                break
            block = other
    elif block.range is not None:
        while block.range is not None:
            at += 1
            if at == end:
                return None
            block = shelf.at(at)
    if rounded < settings.max_split:
        return None if block.size >= settings.max_split else block
    return None if block.size >= rounded + settings.max_non_split_rounding else block
