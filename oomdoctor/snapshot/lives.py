"""When each block of a recorded run was asked for, let go of and free again.

A block that was there before the first event has `born` -1; one that outlives the last has the
number of events for the ends that it did not see.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.facts.segments import BLOCK
from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.shapes import ALLOCATED, NO_POOL, WAITING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from oomdoctor.snapshot.shapes import Device, PoolId

BEFORE = -1


class Life(NamedTuple):
    """One block: who asked for how many bytes, and the events between which it was held.

    From `let_go` to `free` nobody has it, but another stream still uses it.
    """

    address: int
    requested: int
    stack: int
    born: int
    let_go: int
    free: int
    pool: PoolId

    @property
    def size(self) -> int:
        """Return the bytes in steps of 512, as the allocator hands them out."""
        return (max(self.requested, 1) + BLOCK - 1) & -BLOCK


def lives_of(device: Device) -> tuple[Life, ...]:
    """Return all blocks of a device, in the order in which they were let go."""
    events, stacks = device.events, device.stacks or bytes(len(device.events))
    held: dict[int, tuple[int, int, int, PoolId | None]] = {}
    waiting: dict[int, tuple[int, int, int, int, PoolId | None]] = {}
    found: list[Life] = []
    end = len(events)
    pools = _Pools(device)
    for at, event in enumerate(events):
        action, address, size, _, pool = event
        if action == "alloc":
            held[address] = (size, stacks[at], at, pool)
        elif action == "free_requested":
            size, stack, born, pool = held.pop(address, (size, 0, BEFORE, pool))
            waiting[address] = (size, stack, born, at, pool)
        elif action == "free_completed":
            was = waiting.pop(address, (size, 0, BEFORE, BEFORE, pool))
            size, stack, born, let_go, pool = was
            found.append(Life(address, size, stack, born, let_go, at, pools.of(address, pool)))
    for address, (size, stack, born, let_go, pool) in waiting.items():
        found.append(Life(address, size, stack, born, let_go, end, pools.of(address, pool)))
    for address, (size, stack, born, pool) in held.items():
        found.append(Life(address, size, stack, born, end, end, pools.of(address, pool)))
    found += _untouched(device, held.keys() | waiting.keys())
    return tuple(found)


def _untouched(device: Device, known: Collection[int]) -> Iterator[Life]:
    """Return the blocks at the end that no event tells of."""
    end = len(device.events)
    for segment in device.segments:
        for one in segment.pieces:
            is_held = one.state == ALLOCATED
            if one.address in known or not (is_held or one.state in WAITING):
                continue
            let_go = end if is_held else BEFORE
            yield Life(one.address, one.requested, one.stack, BEFORE, let_go, end, segment.pool)


class _Pools:
    """Which private pool an address belongs to, where the events do not say."""

    def __init__(self, device: Device) -> None:
        self._private = [
            (one.address, one.address + one.size, one.pool)
            for one in device.segments
            if one.pool != NO_POOL
        ]

    def of(self, address: int, said: PoolId | None) -> PoolId:
        if said is not None:
            return said
        return next((pool for low, high, pool in self._private if low <= address < high), NO_POOL)


def curve_of(lives: Sequence[Life], count: int) -> array[int]:
    """Return the bytes that were held or waited before each of `count` events and after all."""
    change = array("q", bytes(8 * (count + 2)))
    total = 0
    try:
        for one in lives:
            change[one.born + 1] += one.size
            change[one.free + 1] -= one.size
        for at, step in enumerate(change):
            total += step
            change[at] = total
    except OverflowError as error:
        raise InputError("the sizes of the trace add up to more than any card has") from error
    change.pop()
    return change


def held_at(lives: Sequence[Life], moment: int) -> list[Life]:
    """Return the blocks that somebody had just before the event with this number."""
    return [one for one in lives if one.born < moment <= one.let_go]


def waiting_at(lives: Sequence[Life], moment: int) -> list[Life]:
    """Return the blocks that were let go but still used by a stream before an event."""
    return [one for one in lives if one.let_go < moment <= one.free]
