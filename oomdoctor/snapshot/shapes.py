"""The values of a snapshot, of any version of PyTorch that wrote one.

    {"segments": [{"device": 0, "address": 139…, "total_size": 2097152, "stream": 0,
                   "segment_type": "small", "blocks": [{"size": 512, "state": "inactive"}, …]}],
     "device_traces": [[{"action": "alloc", "addr": 139…, "size": 512, "stream": 0}, …]],
     "allocator_settings": {…}}

Older ones have no settings, no pool ids, no addresses of blocks (they follow one another), and
`history` with `real_size` in place of `requested_size`. An `oom` has `device_free` for `addr`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.errors import InputError
from oomdoctor.facts.segments import SMALL_SEGMENT
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

PoolId: TypeAlias = tuple[int, int]
NO_POOL: PoolId = (0, 0)
LIMIT = 1 << 64
ALLOCATED = "active_allocated"
WAITING = ("active_awaiting_free", "active_pending_free")
ADDRESSLESS = ("oom", "snapshot")


class Event(NamedTuple):
    """One entry of a trace; `address` of an `oom` is the free memory of the card."""

    action: str
    address: int
    size: int
    stream: int
    pool: PoolId | None


class Piece(NamedTuple):
    """A block of a segment."""

    address: int
    size: int
    requested: int
    state: str


class Segment(NamedTuple):
    """A stretch of memory that the driver gave."""

    address: int
    size: int
    stream: int
    small: bool
    expandable: bool
    pool: PoolId
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a snapshot says of one card."""

    number: int
    segments: tuple[Segment, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cards of a snapshot and the allocator's settings as it lists them."""

    devices: tuple[Device, ...]
    settings: Mapping[str, object]


def snapshot_of(plain: object) -> Snapshot:
    """Read the values of a snapshot; InputError where they are not those of one."""
    if isinstance(plain, list):  # `memory_snapshot()`: the segments alone
        plain = {"segments": plain, "device_traces": []}
    if not isinstance(plain, dict) or "segments" not in plain:
        raise InputError(
            "this is no memory snapshot: it has no `segments`",
            hint="a snapshot is what torch.cuda.memory._dump_snapshot writes",
        )
    segments = [(_number(one, "device", 0), _segment(one)) for one in _list(plain, "segments")]
    traces = [_trace(plain, at) for at in range(len(_list(plain, "device_traces", [])))]
    last = max([number + 1 for number, _ in segments] + [len(traces)], default=0)
    if last > len(segments) + len(traces):
        raise InputError("a segment belongs to a device that there cannot be")
    devices = (
        Device(
            number=number,
            segments=tuple(one for device, one in segments if device == number),
            events=traces[number] if number < len(traces) else (),
        )
        for number in range(last)
    )
    settings = plain.get("allocator_settings", {})
    return Snapshot(
        devices=tuple(one for one in devices if one.segments or one.events),
        settings=settings if isinstance(settings, dict) else {},
    )


def _trace(plain: dict[str, Any], at: int) -> tuple[Event, ...]:
    entries = plain["device_traces"][at]
    if not isinstance(entries, list):
        raise InputError(f"device_traces[{at}] is no list")
    try:
        return tuple(_event(one) for one in entries)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"device_traces[{at}] has an event without {error}") from error


def _event(entry: dict[str, Any]) -> Event:
    action = entry["action"]
    address = entry.get("device_free", 0) if action in ADDRESSLESS else entry["addr"]
    size, stream = entry["size"], entry.get("stream", 0)
    for value in (address, size, stream):
        if type(value) is not int or not 0 <= value < LIMIT:
            raise InputError(f"an event of a trace ({action!r:.40}) has a value that is no size")
    pool = entry.get("pool_id")
    return Event(str(action), address, size, stream, None if pool is None else _pool(pool))


def _segment(entry: object) -> Segment:
    if not isinstance(entry, dict):
        raise InputError("a segment is no dictionary")
    address, size = _number(entry, "address"), _number(entry, "total_size")
    pieces, at = [], address
    for block in _list(entry, "blocks"):
        at = _number(block, "address", at)
        piece = Piece(at, _number(block, "size"), _requested(block), str(block.get("state")))
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
