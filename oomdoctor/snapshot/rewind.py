"""The memory as it was when a trace began: the final segments, rewound event by event.

A block that was freed during the trace and allocated before it is known by the bytes asked for
alone. Its size follows from the rounding, and from what an unsplit block keeps: less than 1 MiB
behind a large block is its own, since so little is never split off. Where a free block follows, the
first allocation in it tells where it began.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from oomdoctor.facts.segments import SMALL_REQUEST, SMALL_SEGMENT
from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.events import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    NO_POOL,
    SEGMENT_MAP,
)
from oomdoctor.snapshot.shapes import ALLOCATED, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.memory.allocator import Allocator
    from oomdoctor.snapshot.events import Event, Events, PoolId
    from oomdoctor.snapshot.shapes import Device


class Held:
    """A block that somebody had: its size, None where it is not known yet."""

    __slots__ = ("end", "requested", "size", "waiting")

    def __init__(self, requested: int, size: int | None, *, waiting: bool) -> None:
        """Describe a block."""
        self.requested = requested
        self.size = size
        self.waiting = waiting
        self.end: int | None = None


class Stretch(NamedTuple):
    """Memory from the driver: a segment, or pages of an expandable one."""

    address: int
    size: int
    stream: int
    small: bool
    expandable: bool
    pool: PoolId

    @property
    def end(self) -> int:
        """Return the first address behind it."""
        return self.address + self.size


class Beginning(NamedTuple):
    """The memory at the first event; `faults` are events that do not fit what came later.

    `mapped_later` has, by end and stream, the lowest address of pages that the trace maps.
    """

    stretches: tuple[Stretch, ...]
    held: dict[int, Held]
    faults: int
    mapped_later: Mapping[tuple[int, int], int]


def rewind(device: Device, model: Allocator) -> Beginning:
    """Undo the events of a trace, the latest first; `model` has the settings of the run."""
    undoing = _Undoing(device, model.settings.large_segment)
    undoing.undo_all(device.events)
    stretches = tuple(sorted(undoing.stretches.values()))
    _find_ends(device.events, undoing.held, model.round)
    mapped: dict[tuple[int, int], int] = {}
    for at in device.events.of_kinds(SEGMENT_MAP):
        one = device.events[at]
        end = (one.address + one.size, one.stream)
        mapped[end] = min(mapped.get(end, one.address), one.address)
    return Beginning(stretches, undoing.held, undoing.faults, mapped)


class _Undoing:
    """The segments and blocks, going back in time."""

    def __init__(self, device: Device, page: int) -> None:
        self.page = page
        self.stretches: dict[int, Stretch] = {}
        self.held: dict[int, Held] = {}
        self.faults = 0
        for one in device.segments:
            self.stretches[one.address] = Stretch(
                one.address, one.size, one.stream, one.small, one.expandable, one.pool
            )
            for piece in one.pieces:
                if piece.state == ALLOCATED or piece.state in WAITING:
                    waiting = piece.state in WAITING
                    self.held[piece.address] = Held(piece.requested, piece.size, waiting=waiting)

    def undo_all(self, events: Events) -> None:
        held, addresses, sizes = self.held, events.addresses, events.sizes
        for at in range(len(events) - 1, -1, -1):
            kind, address = events.kinds[at], addresses[at]
            if kind == ALLOC:
                if held.pop(address, None) is None:
                    self.faults += 1
            elif kind == FREE_COMPLETED:
                self.faults += address in held
                held[address] = Held(sizes[at], None, waiting=True)
            elif kind == FREE_REQUESTED:
                block = held.get(address)
                if block is None:
                    self.faults += 1
                else:
                    block.waiting = False
            else:
                self._undo_segment(events[at])

    def _undo_segment(self, event: Event) -> None:
        match event.action:
            case "segment_alloc":
                if self.stretches.pop(event.address, None) is None:
                    self.faults += 1
            case "segment_free":
                self.stretches[event.address] = _stretch(event, expandable=False)
            case "segment_unmap":
                small = event.size % self.page > 0
                self._add(_stretch(event, expandable=True)._replace(small=small))
            case "segment_map":
                self._cut(event.address, event.size)
            case _:
                pass

    def _add(self, added: Stretch) -> None:
        """Put pages back and join them with those beside them."""
        start, end = added.address, added.end
        for other in [one for one in self.stretches.values() if one.expandable]:
            if other.stream == added.stream and (other.end == start or other.address == end):
                start, end = min(start, other.address), max(end, other.end)
                added = added._replace(small=other.small, pool=other.pool)
                del self.stretches[other.address]
        self.stretches[start] = added._replace(address=start, size=end - start)

    def _cut(self, address: int, size: int) -> None:
        """Take pages away that were mapped later."""
        end = address + size
        for one in list(self.stretches.values()):
            if one.expandable and one.address <= address and end <= one.end:
                del self.stretches[one.address]
                for start, stop in ((one.address, address), (end, one.end)):
                    if stop > start:
                        self.stretches[start] = one._replace(address=start, size=stop - start)
                return
        self.faults += 1


def _stretch(event: Event, *, expandable: bool) -> Stretch:
    """Describe memory that was given back during the trace."""
    small = event.size == SMALL_SEGMENT
    return Stretch(
        event.address, event.size, event.stream, small, expandable, event.pool or NO_POOL
    )


def _find_ends(events: Events, held: dict[int, Held], rounded: Callable[[int], int]) -> None:
    """Note where blocks of unknown size end, if an allocation behind one shows it.

    What is allocated within 1 MiB behind a large block, while that block is held, lies at the start
    of the free block that followed it.
    """
    unknown = sorted(
        address
        for address, one in held.items()
        if one.size is None and one.requested > SMALL_REQUEST
    )
    for kind, address in zip(events.kinds, events.addresses, strict=True):
        if not unknown:
            return
        if kind == ALLOC:
            at = bisect_right(unknown, address) - 1
            block = held[unknown[at]] if at >= 0 else None
            if block is None or address == unknown[at]:
                continue
            nearest = unknown[at] + rounded(block.requested)
            if nearest <= address <= nearest + SMALL_REQUEST:
                block.end = address
                del unknown[at]
        elif kind == FREE_COMPLETED:
            at = bisect_right(unknown, address) - 1
            if at >= 0 and unknown[at] == address:
                del unknown[at]
