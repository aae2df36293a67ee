"""The events of a trace in columns: a trace of 12 million takes 37 bytes for each.

    events[3]          Event(action="alloc", address=139…, size=512, stream=0, pool=(0, 0))
    events.kinds[3]    ALLOC

What goes through all events reads the columns; an `Event` is made where one is looked at.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

from oomdoctor.errors import InputError
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PoolId: TypeAlias = tuple[int, int]
NO_POOL: PoolId = (0, 0)
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
)
ALLOC, FREE_REQUESTED, FREE_COMPLETED = 0, 1, 2
SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, OOM = 3, 4, 5, 6, 7
TAKEN, GIVEN_BACK = (SEGMENT_ALLOC, SEGMENT_MAP), (SEGMENT_FREE, SEGMENT_UNMAP)
MOST_NAMES = 1 << 16
MOST_ACTIONS = 1 << 8

Name = TypeVar("Name")


class Event(NamedTuple):
    """One entry of a trace; `address` of an `oom` is the free memory of the card."""

    action: str
    address: int
    size: int
    stream: int
    pool: PoolId | None


class Events(Sequence[Event]):
    """The events of one card, oldest first.

    `kinds` are numbers of `actions`, which begin with `ACTIONS`; `stream_numbers` and
    `pool_numbers` those of `streams` and `pools`.
    """

    __slots__ = (
        "actions",
        "addresses",
        "kinds",
        "pool_numbers",
        "pools",
        "sizes",
        "stream_numbers",
        "streams",
    )

    def __init__(
        self,
        kinds: array[int],
        addresses: array[int],
        sizes: array[int],
        stream_numbers: array[int],
        pool_numbers: array[int],
    ) -> None:
        """Take columns of the same length; the names may follow."""
        self.kinds = kinds
        self.addresses = addresses
        self.sizes = sizes
        self.stream_numbers = stream_numbers
        self.pool_numbers = pool_numbers
        self.actions: list[str] = list(ACTIONS)
        self.streams: list[int] = [0]
        self.pools: list[PoolId | None] = [None]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.kinds)

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> list[Event]: ...
    def __getitem__(self, at: int | slice) -> Event | list[Event]:
        """Return an event, or several."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self.kinds)))]
        return Event(
            self.actions[self.kinds[at]],
            self.addresses[at],
            self.sizes[at],
            self.streams[self.stream_numbers[at]],
            self.pools[self.pool_numbers[at]],
        )

    def __iter__(self) -> Iterator[Event]:
        """Go through the events."""
        for kind, address, size, stream, pool in zip(
            self.kinds,
            self.addresses,
            self.sizes,
            self.stream_numbers,
            self.pool_numbers,
            strict=True,
        ):
            yield Event(self.actions[kind], address, size, self.streams[stream], self.pools[pool])

    def part(self, stretch: slice) -> Events:
        """Return some of the events, which follow one another."""
        return Events(
            self.kinds[stretch],
            self.addresses[stretch],
            self.sizes[stretch],
            self.stream_numbers[stretch],
            self.pool_numbers[stretch],
        )

    def of_kinds(self, *kinds: int) -> list[int]:
        """Return the numbers of the events of some kinds, in order."""
        packed, found = self.kinds.tobytes(), []
        for kind in kinds:
            sign, at = bytes([kind]), -1
            while (at := packed.find(sign, at + 1)) >= 0:
                found.append(at)
        return sorted(found)

    def last_failed(self) -> int | None:
        """Return the number of the latest request that failed; None where none did."""
        return max(self.of_kinds(OOM), default=None)


class Builder:
    """Puts events into columns, one by one."""

    def __init__(self) -> None:
        """Start empty."""
        self.events = Events(array("B"), array("Q"), array("Q"), array("H"), array("H"))
        self._kinds = {name: kind for kind, name in enumerate(ACTIONS)}
        self._streams = {0: 0}
        self._pools: dict[PoolId | None, int] = {None: 0}

    def add(self, action: str, address: int, size: int, stream: int, pool: PoolId | None) -> None:
        """Add an event behind the others."""
        events = self.events
        kind = self._kinds.get(action)
        if kind is None:
            kind = self._kinds[action] = _next(events.actions, action, MOST_ACTIONS)
        number = self._streams.get(stream)
        if number is None:
            number = self._streams[stream] = _next(events.streams, stream, MOST_NAMES)
        owner = self._pools.get(pool)
        if owner is None:
            owner = self._pools[pool] = _next(events.pools, pool, MOST_NAMES)
        events.kinds.append(kind)
        events.addresses.append(address)
        events.sizes.append(size)
        events.stream_numbers.append(number)
        events.pool_numbers.append(owner)


def _next(names: list[Name], name: Name, most: int) -> int:
    if len(names) >= most:
        raise InputError(f"a trace has {most:,} kinds of events, streams or pools, or more")
    names.append(name)
    return len(names) - 1
