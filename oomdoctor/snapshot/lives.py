"""When each block of a recorded run was asked for, let go of and free again.

A block that was there before the first event has `born` -1; one that outlives the last has the
number of events for the ends that it did not see.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, overload

from oomdoctor.errors import InputError
from oomdoctor.facts.segments import BLOCK, block_bytes
from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.events import ALLOC, FREE_COMPLETED, FREE_REQUESTED, NO_POOL
from oomdoctor.snapshot.shapes import ALLOCATED, WAITING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from oomdoctor.snapshot.events import PoolId
    from oomdoctor.snapshot.shapes import Device

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
        return block_bytes(self.requested)


class Lives(Sequence[Life]):
    """The lives of all blocks of a card, in columns; a `Life` is made where one is looked at."""

    __slots__ = (
        "addresses", "born", "free", "let_go", "pool_numbers", "pools", "requested", "stacks",
    )  # fmt: skip

    def __init__(self, pools: list[PoolId]) -> None:
        """Start empty; `pools` are those that `pool_numbers` name."""
        self.addresses, self.requested = array("Q"), array("Q")
        self.stacks, self.pool_numbers = array("I"), array("I")
        self.born, self.let_go, self.free = array("i"), array("i"), array("i")
        self.pools = pools

    def add(self, what: tuple[int, int, int, int], born: int, let_go: int, free: int) -> None:
        """Add a block by its address, requested bytes, stack and number of a pool."""
        address, requested, stack, pool = what
        self.addresses.append(address)
        self.requested.append(requested)
        self.stacks.append(stack)
        self.pool_numbers.append(pool)
        self.born.append(born)
        self.let_go.append(let_go)
        self.free.append(free)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.born)

    @overload
    def __getitem__(self, at: int) -> Life: ...
    @overload
    def __getitem__(self, at: slice) -> list[Life]: ...
    def __getitem__(self, at: int | slice) -> Life | list[Life]:
        """Return the life of one block, or of several."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self.born)))]
        return Life(
            self.addresses[at],
            self.requested[at],
            self.stacks[at],
            self.born[at],
            self.let_go[at],
            self.free[at],
            self.pools[self.pool_numbers[at]],
        )

    def __iter__(self) -> Iterator[Life]:
        """Go through the lives."""
        return map(self.__getitem__, range(len(self.born)))

    def before_bytes(self) -> int:
        """Return the bytes that were held when the recording began."""
        pairs = zip(self.born, self.requested, strict=True)
        return sum(block_bytes(requested) for born, requested in pairs if born == BEFORE)


def lives_of(device: Device) -> Lives:
    """Return all blocks of a device, in the order in which they became free."""
    events = device.events
    addresses, sizes, stacks = events.addresses, events.sizes, device.stacks
    pools = _Pools(device)
    found, end = Lives(pools.names), len(events)
    add, pool_of = found.add, pools.of
    held: dict[int, int] = {}
    waiting: dict[int, tuple[int, int]] = {}

    def told(at: int, born: int) -> tuple[int, int, int, int]:
        """Return what is known of a block from the event that asked for it, or from a later one."""
        stack = stacks[at] if born >= 0 and stacks else 0
        address = addresses[at]
        return address, sizes[at], stack, pool_of(address, at)

    for at, kind in enumerate(events.kinds):
        if kind == ALLOC:
            held[addresses[at]] = at
        elif kind == FREE_REQUESTED:
            address = addresses[at]
            waiting[address] = (held.pop(address, BEFORE), at)
        elif kind == FREE_COMPLETED:
            born, let_go = waiting.pop(addresses[at], (BEFORE, BEFORE))
            source = born if born >= 0 else let_go if let_go >= 0 else at
            add(told(source, born), born, let_go, at)
    for born, let_go in waiting.values():
        add(told(born if born >= 0 else let_go, born), born, let_go, end)
    for born in held.values():
        add(told(born, born), born, end, end)
    _add_untouched(device, held.keys() | waiting.keys(), found, pools)
    return found


def _add_untouched(device: Device, known: Collection[int], found: Lives, pools: _Pools) -> None:
    """Add the blocks at the end that no event tells of."""
    end = len(device.events)
    for segment in device.segments:
        for one in segment.pieces:
            is_held = one.state == ALLOCATED
            if one.address in known or not (is_held or one.state in WAITING):
                continue
            let_go = end if is_held else BEFORE
            what = (one.address, one.requested, one.stack, pools.number(segment.pool))
            found.add(what, BEFORE, let_go, end)


class _Pools:
    """Which private pool an address belongs to, where the events do not say."""

    def __init__(self, device: Device) -> None:
        self._said = device.events.pool_numbers
        self.names: list[PoolId] = [NO_POOL, *(one or NO_POOL for one in device.events.pools[1:])]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._private = [(low, high, self.number(pool)) for low, high, pool in device.private]

    def of(self, address: int, at: int) -> int:
        said = self._said[at]
        if said or not self._private:
            return said
        return next((pool for low, high, pool in self._private if low <= address < high), 0)

    def number(self, pool: PoolId) -> int:
        number = self._numbers.setdefault(pool, len(self.names))
        if number == len(self.names):
            self.names.append(pool)
        return number


def curve_of(lives: Lives, count: int) -> array[int]:
    """Return the bytes that were held or waited before each of `count` events and after all."""
    change = array("q", bytes(8 * (count + 2)))
    try:
        for born, free, requested in zip(lives.born, lives.free, lives.requested, strict=True):
            size = (requested + BLOCK - 1) & -BLOCK or BLOCK
            change[born + 1] += size
            change[free + 1] -= size
        curve = array("q", accumulate(change))
    except OverflowError as error:
        raise InputError("the sizes of the trace add up to more than any card has") from error
    curve.pop()
    return curve


def held_at(lives: Lives, moment: int) -> list[Life]:
    """Return the blocks that somebody had just before the event with this number."""
    pairs = enumerate(zip(lives.born, lives.let_go, strict=True))
    return [lives[at] for at, (born, let_go) in pairs if born < moment <= let_go]


def waiting_at(lives: Lives, moment: int) -> list[Life]:
    """Return the blocks that were let go but still used by a stream before an event."""
    pairs = enumerate(zip(lives.let_go, lives.free, strict=True))
    return [lives[at] for at, (let_go, free) in pairs if let_go < moment <= free]
