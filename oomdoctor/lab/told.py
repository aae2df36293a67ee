"""What the processes of a trial told over their lines, gathered into what a result holds."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.model.trial import PhasePeak
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Message: TypeAlias = dict[str, Any]

_FIGURES = ("allocated_bytes", "reserved_bytes", "device_bytes", "host_bytes")
_WORKING = ("train step", "evaluation", "generation")


class Speaker:
    """One process: its rank, its steps, the peaks of its phases, and how it ended."""

    def __init__(self, pid: int) -> None:
        """Know nothing of it yet."""
        self.pid = pid
        self.rank: int | None = None
        self.world = 1
        self.steps = 0
        self.step_seconds: list[float] = []
        self.tokens: list[int] = []
        self.held_bytes: list[int] = []
        self.phases: dict[str, PhasePeak] = {}
        self.is_done = False  # it ended after the steps that were asked for
        self.went_on = False  # it stepped after it had run out of memory
        self.failed = False

    def figures(self, message: Message) -> None:
        """Take in the peaks of a phase."""
        name = message.get("phase")
        if not isinstance(name, str):
            return
        old = self.phases.get(name) or PhasePeak(name=name)
        new = {key: _highest((getattr(old, key), message.get(key))) for key in _FIGURES}
        seconds = old.seconds
        if message["type"] == "phase":
            seconds = (seconds or 0.0) + float(message.get("seconds") or 0.0)
        self.phases[name] = replace(old, **new, seconds=seconds)


class Told:
    """What all processes of one trial have told so far."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.speakers: dict[int, Speaker] = {}
        self.ooms: list[Message] = []
        self.errors: list[Message] = []
        self.notes: list[str] = []
        self.held_sites: list[str] = []
        self.unmet: set[str] = set()
        self.interventions: dict[str, int] = {}
        self.versions: dict[str, str] = {}

    def hear(self, message: Message) -> None:
        """Take in one message."""
        pid = message.get("pid")
        if not isinstance(pid, int):
            return
        speaker = self.speakers.setdefault(pid, Speaker(pid))
        if isinstance(message.get("rank"), int):
            speaker.rank = message["rank"]
        speaker.world = max(speaker.world, int(message.get("world") or 1))
        speaker.figures(message)
        self._hear_of(speaker, message)

    def _hear_of(self, speaker: Speaker, message: Message) -> None:
        match message.get("type"):
            case "hello":
                self.versions.update(message.get("versions") or {})
            case "step":
                self._step(speaker, message)
            case "oom":
                self.ooms.append(message)
            case "error":
                self.errors.append(message)
                speaker.failed = not message.get("thread")
            case "done" | "exit":
                speaker.is_done = message["type"] == "done"
                if speaker.steps or speaker.is_done:
                    self.unmet.update(message.get("unmet") or ())
            case "intervened":
                name = str(message.get("name"))
                times = int(message.get("times") or 0)
                self.interventions[name] = max(times, self.interventions.get(name, 0))
            case "note" | "fault":
                self.notes.append(str(message.get("text") or _fault(message)))
            case "held":
                self.held_sites.append(str(message.get("text")))

    def _step(self, speaker: Speaker, message: Message) -> None:
        speaker.steps = int(message["number"])
        if message.get("seconds"):
            speaker.step_seconds.append(float(message["seconds"]))
        if message.get("tokens"):
            speaker.tokens.append(int(message["tokens"]))
        if message.get("held_bytes"):
            speaker.held_bytes.append(int(message["held_bytes"]))
        speaker.went_on = speaker.went_on or any(one["pid"] == speaker.pid for one in self.ooms)

    @property
    def workers(self) -> list[Speaker]:
        """The processes that train, evaluate or generate; launchers and helpers are none."""
        return [
            one
            for one in self.speakers.values()
            if one.steps or not one.phases.keys().isdisjoint(_WORKING)
        ]

    @property
    def ranks(self) -> int:
        """How many processes train together."""
        return max((one.world for one in self.workers), default=1)

    @property
    def is_done(self) -> bool:
        """Whether every rank has told that it ended after its steps."""
        done = sum(one.is_done for one in self.workers)
        return done > 0 and done >= self.ranks

    @property
    def held_anything(self) -> bool:
        """Whether a process that is watched had memory of the device that is looked at."""
        every = (one for speaker in self.speakers.values() for one in speaker.phases.values())
        return any(one.allocated_bytes for one in every)

    @property
    def steps(self) -> int:
        """The optimizer steps that every rank has made."""
        return min((one.steps for one in self.workers if one.steps), default=0)

    def phases(self) -> tuple[PhasePeak, ...]:
        """Return the peaks of each phase: the highest of all ranks."""
        speakers = self.workers or list(self.speakers.values())
        merged: dict[str, PhasePeak] = {}
        for peak in (one for speaker in speakers for one in speaker.phases.values()):
            merged[peak.name] = _merged(merged.get(peak.name), peak)
        return tuple(merged.values())

    def held_bytes(self) -> tuple[int, ...]:
        """Return what the rank that holds most had allocated after each of its steps."""
        every = [one.held_bytes for one in self.workers if one.held_bytes]
        return tuple(max(every, key=max, default=()))

    def step_seconds(self) -> float | None:
        """Return the median of a step of the slowest rank, the first step left out."""
        every = [median(one.step_seconds) for one in self.workers if one.step_seconds]
        return max(every, default=None)

    def tokens_per_step(self) -> int | None:
        """Return the tokens of one step on all ranks, where the program was seen to have any."""
        every = [median(one.tokens) for one in self.workers if one.tokens]
        return int(sum(every)) or None


def _merged(old: PhasePeak | None, new: PhasePeak) -> PhasePeak:
    if old is None:
        return new
    fields = (*_FIGURES, "seconds")
    return replace(old, **{key: _highest((getattr(old, key), getattr(new, key))) for key in fields})


def _highest(values: Iterable[Any]) -> Any:  # noqa: ANN401 - figures of a message: int or float
    return max(_numbers(values), default=None)


def _numbers(values: Iterable[Any]) -> Iterator[int | float]:
    return (one for one in values if isinstance(one, (int, float)))


def _fault(message: Message) -> str:
    return f"the hook {message.get('where')} failed: {message.get('error')}"
