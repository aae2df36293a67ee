"""Of which kinds the values in a bundle's files are; whoever reads them may rely on it.

list(misfits({"seconds": "long"}, RUN)) == ["seconds is text, not a number"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.recorder.places import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    Shape: TypeAlias = "type | list[Shape] | tuple[Shape, ...] | dict[str, Shape]"

_PROCESS: dict[str, Shape] = {"pid": int, "start": int, "name": str, "state": str, "waits_in": str}
_CARD: dict[str, Shape] = {"index": int, "name": str}
_SILENCE: dict[str, Shape] = {"seconds": float, "worked": bool, "processes": [_PROCESS]}
RUN: dict[str, Shape] = {
    "id": str,
    "command": [str],
    "folder": str,
    "started": str,
    "ended": str,
    "seconds": float,
    "exit_code": int,
    "signal": int,
    "stopped": bool,
    "virtual": str,
    "machine": {"overcommit_mode": int, "cards": [_CARD]},
    "recorder": _PROCESS,
    "process": _PROCESS,
    "configs": [{"name": str, "path": str}],
    "signals": [{"t": float, "signal": int, "passed_on": bool, "terminal": bool, "sender": str}],
    "silence": _SILENCE,
    "silences": [_SILENCE],
    "kernel_kills": {"on_machine": int, "in_group": int},
    "outcome": str,
    "cause": str,
}
"""run.json. Names that end in `_bytes` are whole numbers everywhere."""
MESSAGE: dict[str, Shape] = {
    "type": str,
    "t": float,
    "pid": int,
    "rank": int,
    "frames": [(str, str, int)],
    "main_frames": [(str, str, int)],
    "causes": [str],
}
"""A line of events.jsonl."""
SAMPLE: dict[str, Shape] = {"t": float, "host": {}, "processes": [_PROCESS], "devices": [_CARD]}
"""A line of samples.jsonl."""
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def misfits(value: object, shape: Shape, name: str = "it") -> Iterator[str]:
    """Yield what is of another kind than it has to be; a null is right where a name has it."""
    match shape:
        case dict():
            if isinstance(value, dict):
                yield from _within(value, shape, name)
            else:
                yield f"{name} is {_kind(value)}, not an object"
        case list() | tuple():
            size = None if isinstance(shape, list) else len(shape)
            if not isinstance(value, list) or size not in (None, len(value)):
                yield f"{name} is {_kind(value)}, not a list{'' if size is None else f' of {size}'}"
                return
            kinds = shape * len(value) if isinstance(shape, list) else shape
            for number, (one, wanted) in enumerate(zip(value, kinds, strict=True)):
                yield from misfits(one, wanted, f"{name}[{number}]")
        case _:
            allowed = (int, float) if shape is float else shape
            if not isinstance(value, allowed) or (isinstance(value, bool) and shape is not bool):
                yield f"{name} is {_kind(value)}, not {_WORDS[shape]}"


def message_of(line: bytes, shape: Shape) -> dict[str, Any] | None:
    """Return the object of a line; None where there is none, or a value of another kind."""
    try:
        told = parsed(line)
    except ValueError:
        return None
    return None if any(misfits(told, shape)) else told


def _within(value: dict[str, object], shape: dict[str, Shape], name: str) -> Iterator[str]:
    for key, one in value.items():
        wanted = shape.get(key, int if key.endswith("_bytes") else None)
        if wanted is not None and one is not None:
            yield from misfits(one, wanted, key if name == "it" else f"{name}.{key}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)}"
        case _:
            return _WORDS[type(value)]
