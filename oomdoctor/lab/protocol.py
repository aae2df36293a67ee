r"""Messages between the command and the worker: JSON lines, written and read by their dataclasses.

    {"type": "trace", "job": {"model": {...}, "batch": 1, ...}, "card": {...}, "phases": []}
    {"type": "progress", "text": "step 1", "seconds": 1.4, "rss_bytes": 398458880}
    {"type": "result", "stream": {...}, "seconds": 4.2, "rss_bytes": 401604608}

Fields that a reader does not know are passed over, and those that are missing have their default,
so that both sides may be of different versions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from oomdoctor.model.job import CardSpec, Job  # noqa: TC001 - messages are read by their types
from oomdoctor.model.trial import PhasePeak  # noqa: TC001 - same
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Json: TypeAlias = Any  # what json.loads returns

VERSION = 1
_T = TypeVar("_T")


class ProtocolError(ValueError):
    """A message is not what it should be; the text says which field and what stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The worker is there: the first message that it sends."""

    v: int = VERSION
    pid: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """Run a job on fake tensors and return its stream; without `phases`, all that the job has."""

    job: Job
    card: CardSpec
    phases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """Run a job on the CUDA device of the worker and return the stream that torch's allocator got.

    `card` is that device, `settings` are those of the allocator that the worker was started with:
    both stand in the stream's facts. Without `phases`, all that the job has. `is_own_size`: the
    device has the card's own memory, and not room for any peak; a run that wants more is a Failure
    of the kind oom.
    """

    job: Job
    card: CardSpec
    settings: str = ""
    phases: tuple[str, ...] = ()
    is_own_size: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Run a job on real tensors: on `device` (cuda or cpu), the allocator limited to `cap_bytes`.

    On the CPU the bytes of tensors are counted, and the cap raises torch's own error.
    """

    job: Job
    device: str
    cap_bytes: int | None = None
    steps: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OomTold:
    """An error that says that memory is missing: of the device, or of the host."""

    backend: str
    exception: str
    message: str
    site: str | None = None
    requested_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How far a job came: phases that it ended or failed in, and the seconds of a later step."""

    phases: tuple[PhasePeak, ...]
    seconds: float
    oom: OomTold | None = None
    step_seconds: float | None = None
    assumptions: tuple[str, ...] = ()
    rss_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The worker lives and works at `text`, `seconds` after it took up the request.

    `phases` are those that ended so far, where a job is run.
    """

    text: str
    seconds: float
    rss_bytes: int = 0
    phases: tuple[PhasePeak, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """A stream as `memory.stream_json` writes it; the time it took, the worker's largest RSS."""

    stream: Mapping[str, object]
    seconds: float
    rss_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request that could not be met.

    `kind` is no-torch, shim-failed, model-code-needs-files, unsupported, oom or crashed; the
    session adds timed-out and what it learns from the way a worker ended.
    """

    kind: str
    message: str
    hint: str | None = None


MESSAGES: dict[str, type] = {
    "hello": Hello,
    "trace": TraceRequest,
    "record": RecordRequest,
    "run": RunRequest,
    "ran": RunResult,
    "progress": Progress,
    "result": TraceResult,
    "failure": Failure,
}


def to_line(message: object) -> bytes:
    """Return a message as one line."""
    name = next(one for one, cls in MESSAGES.items() if type(message) is cls)
    text = json.dumps({"type": name, **encode(message)}, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def from_line(line: bytes) -> object:
    """Return the message of a line; ProtocolError if it is none."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"not JSON: {line[:80]!r}") from error
    cls = MESSAGES.get(str(data.get("type"))) if isinstance(data, dict) else None
    if cls is None:
        raise ProtocolError(f"not a message: {line[:80]!r}")
    return decode(cls, data)


def encode(record: object) -> dict[str, Json]:
    """Return a record of `oomdoctor.record` as what JSON can hold."""
    return {name: _plain(getattr(record, name)) for name in _names(record)}


def decode(cls: type[_T], data: Json) -> _T:
    """Return the record that `encode` wrote; ProtocolError names the field that does not fit."""
    if not isinstance(data, dict):
        raise ProtocolError(f"{cls.__name__}: expected an object, got {data!r:.80}")
    record: Any = cls
    hints = _hints(record)
    given = [name for name in _names(cls) if name in data]
    missing = [name for name in _needed(cls) if name not in data]
    if missing:
        raise ProtocolError(f"{cls.__name__}: without {', '.join(missing)}")
    return cls(
        **{name: _typed(hints[name], data[name], f"{cls.__name__}.{name}") for name in given}
    )


def _is_record(value: object) -> bool:
    return hasattr(value, "_field_names")


def _names(record: Any) -> tuple[str, ...]:  # noqa: ANN401 - an object of any record, or the class
    names: tuple[str, ...] = record._field_names  # noqa: SLF001 - what `record` says of its classes
    return names


def _needed(cls: type[Any]) -> list[str]:
    defaults: dict[str, object] = cls._field_defaults
    return [name for name in _names(cls) if name not in defaults]


def _plain(value: object) -> Json:
    if _is_record(value):
        return encode(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ProtocolError(f"a {type(value).__name__} cannot be sent: {value!r:.80}")


@cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a record's fields; what is imported for checkers only is given here."""
    own = vars(sys.modules[cls.__module__])
    return get_type_hints(cls, globalns={"Mapping": Mapping, "Sequence": Sequence, **own})


def _typed(hint: Any, value: Json, place: str) -> Json:  # noqa: ANN401 - any type that a field has
    """Return the value as the type asks for it."""
    if hint is object or hint is Any:
        return value
    if _is_record(hint):
        return decode(hint, value)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is None:
        return _scalar(hint, value, place)
    if origin in (Union, UnionType):
        return _one_of(inner, value, place)
    if origin in (Mapping, dict):
        if not isinstance(value, dict):
            raise ProtocolError(f"{place}: expected an object, got {value!r:.80}")
        return {key: _typed(inner[1], one, place) for key, one in value.items()}
    return tuple(_items(inner, value, place))


def _items(hints: tuple[Any, ...], value: Json, place: str) -> Iterator[Json]:
    """Yield the items of a tuple or a sequence."""
    if not isinstance(value, list):
        raise ProtocolError(f"{place}: expected a list, got {value!r:.80}")
    alike = len(hints) == 1 or hints[1:] == (...,)
    for number, one in enumerate(value):
        if not alike and number >= len(hints):
            raise ProtocolError(f"{place}: expected {len(hints)} values, got {value!r:.80}")
        yield _typed(hints[0 if alike else number], one, place)


def _one_of(hints: tuple[Any, ...], value: Json, place: str) -> Json:
    """Return the value as the first type of a union that takes it."""
    if value is None and NoneType in hints:
        return None
    for hint in hints:
        if hint is not NoneType:
            try:
                return _typed(hint, value, place)
            except ProtocolError:
                continue
    raise ProtocolError(f"{place}: {value!r:.80} is none of its types")


def _scalar(hint: type, value: Json, place: str) -> Json:
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise ProtocolError(f"{place}: expected {hint.__name__}, got {value!r:.80}")
    return value
