"""Gathers what one process told in its events.jsonl, line by line.

{"t": 1796078904.638, "type": "step", "pid": 21819, "number": 12, "phase": "train step", ...}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.record import replace
from oomdoctor.recorder.places import finite
from oomdoctor.recorder.told import Error, OutOfMemory, Phase, Process, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    Message: TypeAlias = dict[str, Any]

_PEAKS = (
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "host_bytes",
)


def process_of(key: str, lines: Sequence[tuple[int, Message]]) -> Process:
    """Return what a process told; `lines` are its messages with their places in the file."""
    made = _Maker(key)
    for number, message in lines:
        made.hear(number, message)
    return made.process()


class _Maker:
    """Takes in the messages of one process."""

    def __init__(self, key: str) -> None:
        head = key.partition("-")[0]
        self._base = Process(key=key, pid=int(head) if head.isdecimal() else 0)
        self._steps: list[Step] = []
        self._phases: dict[str, Phase] = {}
        self._ooms: list[OutOfMemory] = []
        self._errors: list[Error] = []
        self._notes: list[str] = []
        self._dumps = 0

    def hear(self, line: int, message: Message) -> None:
        t = finite(message.get("t")) or 0.0
        self._base = replace(self._base, last=t or self._base.last, last_line=line)
        if isinstance(message.get("rank"), int):
            self._base = replace(self._base, rank=message["rank"])
        world = _whole(message.get("world")) or 1
        if world > self._base.world:
            self._base = replace(self._base, world=world)
        phase = message.get("phase")
        if isinstance(phase, str):
            self._base = replace(self._base, phase=phase)
            self._figures(phase, line, message)
        match message.get("type"):
            case "hello" | "torch":
                self._greet(message)
            case "step":
                self._step(t, line, message)
            case "oom":
                self._oom(t, line, message)
            case "error":
                self._error(t, line, message)
            case "note" | "fault":
                self._notes.append(str(message.get("text") or message.get("error"))[:500])
            case "exit" | "done":
                self._base = replace(self._base, exited=True)

    def process(self) -> Process:
        steps = self._steps
        ooms = [
            replace(one, went_on=any(step.t > one.t for step in steps[-1:])) for one in self._ooms
        ]
        return replace(
            self._base,
            steps=tuple(steps),
            phases=tuple(self._phases.values()),
            ooms=tuple(ooms),
            errors=tuple(self._errors),
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _greet(self, message: Message) -> None:
        versions = dict(self._base.versions)
        given = message.get("versions")
        if isinstance(given, dict):
            versions.update({str(name): str(one) for name, one in given.items()})
        if message["type"] == "torch":
            versions["torch"] = str(message.get("version"))
        program = message.get("argv")
        self._base = replace(
            self._base,
            parent=_whole(message.get("parent")) or self._base.parent,
            versions=tuple(versions.items()),
            program=tuple(map(str, program)) if isinstance(program, list) else self._base.program,
        )

    def _figures(self, name: str, line: int, message: Message) -> None:
        old = self._phases.get(name) or Phase(name=name, line=line, times=0)
        new: dict[str, Any] = {
            key: _highest(getattr(old, key), _whole(message.get(key))) for key in _PEAKS
        }
        is_told = message.get("type") == "phase"
        self._phases[name] = replace(
            old,
            line=line,
            seconds=old.seconds + ((finite(message.get("seconds")) or 0.0) if is_told else 0.0),
            times=old.times + is_told,
            **new,
        )

    def _step(self, t: float, line: int, message: Message) -> None:
        number = _whole(message.get("number"))
        if number is None:
            return
        self._steps.append(
            Step(
                number=number,
                t=t,
                line=line,
                seconds=finite(message.get("seconds")),
                tokens=_whole(message.get("tokens")),
                longest=_whole(message.get("longest")),
                phase=self._base.phase,
                steps=_whole(message.get("steps")) or 1,
                allocated_bytes=_whole(message.get("allocated_bytes")),
                reserved_bytes=_whole(message.get("reserved_bytes")),
                peak_allocated_bytes=_whole(message.get("peak_allocated_bytes")),
                peak_reserved_bytes=_whole(message.get("peak_reserved_bytes")),
                rss_bytes=_whole(message.get("rss_bytes")),
            )
        )

    def _oom(self, t: float, line: int, message: Message) -> None:
        self._dumps += 1
        main = message.get("main_frames") if message.get("thread") else None
        frames = (*(message.get("frames") or ()), *(main or ()))
        text = message.get("text")
        self._ooms.append(
            OutOfMemory(
                t=t,
                line=line,
                exception=str(message.get("exception") or "OutOfMemoryError"),
                device=_whole(message.get("device")),
                requested_bytes=_whole(message.get("requested_bytes")),
                free_bytes=_whole(message.get("free_bytes")),
                card_bytes=_whole(message.get("card_bytes")),
                allocated_bytes=_whole(message.get("allocated_bytes")),
                reserved_bytes=_whole(message.get("reserved_bytes")),
                fraction=finite(message.get("fraction")),
                phase=self._base.phase,
                step=_whole(message.get("step")),
                text=text if isinstance(text, str) else None,
                frames=tuple((path, function, line) for path, function, line in frames),
                folder=f"oom-{self._dumps}",
                rows=_whole(message.get("rows")),
                longest=_whole(message.get("longest")),
                tokens=_whole(message.get("tokens")),
            )
        )

    def _error(self, t: float, line: int, message: Message) -> None:
        self._errors.append(
            Error(
                t=t,
                line=line,
                exception=str(message.get("exception")),
                text=str(message.get("text") or ""),
                causes=tuple(message.get("causes") or ()),
                thread=bool(message.get("thread")),
            )
        )


def _highest(*values: int | None) -> int | None:
    return max((one for one in values if one is not None), default=None)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
