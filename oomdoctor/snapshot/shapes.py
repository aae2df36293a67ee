"""The values of a snapshot, of any version of PyTorch that wrote one.

    {"segments": [{"device": 0, "address": 139…, "total_size": 2097152, "stream": 0,
                   "segment_type": "small", "blocks": [{"size": 512, "state": "inactive"}, …]}],
     "device_traces": [[{"action": "alloc", "addr": 139…, "size": 512, "stream": 0}, …]],
     "allocator_settings": {…}}

Older ones have no settings, no pool ids, no addresses of blocks (they follow one another), and
`history` with `real_size` in place of `requested_size`. An `oom` has `device_free` for `addr`.
Events and blocks have `frames` where stacks were recorded, newer events also `time_us` and
`user_metadata`; `external_annotations` are what the profiler calls steps.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from oomdoctor.errors import InputError
from oomdoctor.facts.segments import SMALL_SEGMENT
from oomdoctor.record import NamedTuple, dataclass
from oomdoctor.snapshot.events import NO_POOL, Builder
from oomdoctor.snapshot.stacks import NO_STACK, Budget, StackTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.snapshot.events import Events, PoolId
    from oomdoctor.snapshot.stacks import Stack

LIMIT = 1 << 64
ALLOCATED = "active_allocated"
WAITING = ("active_awaiting_free", "active_pending_free")
ADDRESSLESS = ("oom", "snapshot")


class Piece(NamedTuple):
    """A block of a segment."""

    address: int
    size: int
    requested: int
    state: str
    stack: int = 0


class Annotation(NamedTuple):
    """A stretch of time with a name begins (`START`) or ends (`END`)."""

    stage: str
    name: str
    device: int
    time_us: int


class Segment(NamedTuple):
    """A stretch of memory that the driver gave."""

    address: int
    size: int
    stream: int
    small: bool
    expandable: bool
    pool: PoolId
    pieces: tuple[Piece, ...]


class Trace(NamedTuple):
    """The events of a card, with the stack, the time and the user's note of each."""

    events: Events
    stacks: Sequence[int]
    times_us: Sequence[int]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a snapshot says of one card.

    `stacks`, `times_us` and `notes` (the user's own words) are those of the events.
    """

    number: int
    segments: tuple[Segment, ...]
    events: Events
    stacks: Sequence[int] = ()
    times_us: Sequence[int] = ()
    notes: Sequence[str] = ()

    @property
    def private(self) -> list[tuple[int, int, PoolId]]:
        """Return where the memory of private pools begins and ends at the end of the trace."""
        return [
            (one.address, one.address + one.size, one.pool)
            for one in self.segments
            if one.pool != NO_POOL
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cards of a snapshot and the allocator's settings as it lists them.

    `stacks` are those that events and blocks name by number; number 0 has no frames.
    """

    devices: tuple[Device, ...]
    settings: Mapping[str, object]
    stacks: tuple[Stack, ...] = (NO_STACK,)
    annotations: tuple[Annotation, ...] = ()


def snapshot_of(plain: object, data_bytes: int | None = None, *, consume: bool = False) -> Snapshot:
    """Read the values of a snapshot; InputError where they are not those of one.

    `data_bytes` is the size of the file: it cannot hold more objects than fit into it. With
    `consume`, the events are taken out of the values while they are read, for want of memory.
    """
    if isinstance(plain, list):  # `memory_snapshot()`: the segments alone
        plain = {"segments": plain, "device_traces": []}
    if not isinstance(plain, dict) or "segments" not in plain:
        raise InputError(
            "this is no memory snapshot: it has no `segments`",
            hint="a snapshot is what torch.cuda.memory._dump_snapshot writes",
        )
    budget = Budget(data_bytes)
    table = StackTable(budget)
    listed = _list(plain, "segments")
    budget.spend(len(listed))
    segments = [(_number(one, "device", 0), _segment(one, table, budget)) for one in listed]
    lists = _list(plain, "device_traces", [])
    traces = [_trace(one, at, table, budget, consume=consume) for at, one in enumerate(lists)]
    settings = plain.get("allocator_settings", {})
    return Snapshot(
        devices=devices_of(segments, traces),
        settings=settings if isinstance(settings, dict) else {},
        stacks=tuple(table.stacks),
        annotations=_annotations(plain.get("external_annotations")),
    )


def devices_of(
    segments: Sequence[tuple[int, Segment]], traces: Sequence[Trace]
) -> tuple[Device, ...]:
    """Put the segments of each device beside its trace; leave out those that have nothing."""
    last = max([number + 1 for number, _ in segments] + [len(traces)], default=0)
    if last > len(segments) + len(traces):
        raise InputError("a segment belongs to a device that there cannot be")
    of_device: dict[int, list[Segment]] = {}
    for number, one in segments:
        of_device.setdefault(number, []).append(one)
    found = []
    for number in range(last):
        trace = traces[number] if number < len(traces) else Trace(Builder().events, (), (), ())
        if number in of_device or trace.events:
            found.append(
                Device(
                    number=number,
                    segments=tuple(of_device.get(number, ())),
                    events=trace.events,
                    stacks=trace.stacks,
                    times_us=trace.times_us,
                    notes=trace.notes,
                )
            )
    return tuple(found)


def _trace(entries: object, at: int, table: StackTable, budget: Budget, *, consume: bool) -> Trace:
    """Return the events of a device, with their stacks, times and notes."""
    if not isinstance(entries, list):
        raise InputError(f"device_traces[{at}] is no list")
    budget.spend(len(entries))
    built, stacks, times = Builder(), array("I"), array("q")
    notes: list[str] = []
    try:
        for number, one in enumerate(entries):
            _event(one, built)
            stacks.append(table.number(one.get("frames")))
            times.append(_time(one.get("time_us")))
            notes.append(str(one.get("user_metadata") or ""))
            if consume:
                entries[number] = None
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"device_traces[{at}] has an event without {error}") from error
    return Trace(built.events, stacks, times, tuple(notes) if any(notes) else ())


def _time(value: object) -> int:
    """Return the time of an event, 0 where there is none that a clock can show."""
    return value if type(value) is int and 0 <= value < LIMIT >> 1 else 0


def _annotations(listed: object) -> tuple[Annotation, ...]:
    """Return the annotations that can be read; they are an aid, so that others are left out."""
    found = []
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict):
            continue
        stage, name = one.get("stage"), one.get("name")
        device, time_us = one.get("device"), _time(one.get("time_us"))
        if isinstance(stage, str) and isinstance(name, str) and type(device) is int and time_us:
            found.append(Annotation(stage, name, device, time_us))
    return tuple(found)


def _event(entry: dict[str, Any], built: Builder) -> None:
    action = entry["action"]
    address = entry.get("device_free", 0) if action in ADDRESSLESS else entry["addr"]
    size, stream = entry["size"], entry.get("stream", 0)
    for value in (address, size, stream):
        if type(value) is not int or not 0 <= value < LIMIT:
            raise InputError(f"an event of a trace ({action!r:.40}) has a value that is no size")
    pool = entry.get("pool_id")
    built.add(str(action), address, size, stream, None if pool is None else _pool(pool))


def _segment(entry: object, table: StackTable, budget: Budget) -> Segment:
    if not isinstance(entry, dict):
        raise InputError("a segment is no dictionary")
    address, size = _number(entry, "address"), _number(entry, "total_size")
    pieces, at = [], address
    blocks = _list(entry, "blocks")
    budget.spend(len(blocks))
    for block in blocks:
        at = _number(block, "address", at)
        state, stack = str(block.get("state")), table.number(_frames(block))
        piece = Piece(at, _number(block, "size"), _requested(block), state, stack)
        pieces.append(piece)
        at += piece.size
    kind = entry.get("segment_type")
    return Segment(
        address,
        size,
        _number(entry, "stream", 0),
        size == SMALL_SEGMENT if kind is None else kind == "small",
        bool(entry.get("is_expandable", False)),
        _pool(entry.get("segment_pool_id", NO_POOL)),
        tuple(pieces),
    )


def _frames(block: dict[str, Any]) -> object:
    """Return the stack of a block, which older snapshots keep in its history."""
    history = block.get("history")
    if isinstance(history, list) and history and isinstance(history[0], dict):
        return history[0].get("frames")
    return block.get("frames")


def _requested(block: dict[str, Any]) -> int:
    """Return the bytes that were asked for, where the block says so, else its size."""
    if "requested_size" in block:
        return _number(block, "requested_size")
    history = block.get("history")
    if isinstance(history, list) and history and isinstance(history[0], dict):
        return _number(history[0], "real_size", _number(block, "size"))
    return _number(block, "size")


def _pool(value: object) -> PoolId:
    if isinstance(value, (list, tuple)) and len(value) == 2:
        first, second = value
        if type(first) is int and type(second) is int:
            return (first, second)
    raise InputError("a pool id is no pair of numbers")


def _number(entry: object, key: str, default: int | None = None) -> int:
    value = entry.get(key, default) if isinstance(entry, dict) else None
    if type(value) is not int or not 0 <= value < LIMIT:
        raise InputError(f"`{key}` of a segment is missing or no size")
    return value


def _list(entry: dict[str, Any], key: str, default: list[Any] | None = None) -> list[Any]:
    value = entry.get(key, default)
    if not isinstance(value, list):
        raise InputError(f"`{key}` is missing or no list")
    return value
