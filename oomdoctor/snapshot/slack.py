"""Sizes of blocks at the beginning of a trace that only its replay can show.

A block that was not split keeps up to 1 MiB more than was asked for. Where free memory follows it,
the trace does not show where the block ends; a wrong guess shows in the first allocation that goes
elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.segments import BLOCK, SMALL_REQUEST

if TYPE_CHECKING:
    from oomdoctor.memory.allocator import Allocator
    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.snapshot.rewind import Beginning


def correct(
    allocator: Allocator, beginning: Beginning, rounded: int, recorded: int, modelled: int
) -> bool:
    """Move the end of a block so that a request goes to the recorded address; say if one can be.

    Either the recorded address lies within a free block, which then began there; or the free block
    that the model chose was too small in truth.
    """
    for block in _free_blocks(allocator):
        if block.address < recorded <= block.address + SMALL_REQUEST:
            return _move(allocator, beginning, block.address, recorded)
    for block in _free_blocks(allocator):
        if block.address == modelled:
            end = modelled + block.size - rounded + BLOCK
            return _move(allocator, beginning, modelled, end)
    return False


def _free_blocks(allocator: Allocator) -> list[Block]:
    return [
        block
        for block in allocator.large.free_blocks()
        if block.range is None and block.before is not None
    ]


def _move(allocator: Allocator, beginning: Beginning, end: int, new_end: int) -> bool:
    """Let the block of unknown size that ends at `end` end at `new_end`, if it may keep that."""
    for address, one in beginning.held.items():
        if one.size is not None:
            continue
        rounded = allocator.round(one.requested)
        known = one.end if one.end is not None else address + rounded
        if known == end and rounded > SMALL_REQUEST:
            if new_end - address - rounded > SMALL_REQUEST or new_end <= known:
                return False
            one.end = new_end
            return True
    return False
