"""A bundle as it is read: the run, its processes from inside, and the samples from outside.

    run = read_bundle(Path(".oomdoctor/runs/20260114-093012-train"))
    run.outcome.word, run.processes[0].steps[-1].peak_allocated_bytes

A line that is no object (half written, damaged) or has a value of another kind than it must have is
left out and counted; so is such an entry of run.json, and told.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.errors import InputError, Location
from oomdoctor.probe import processes as live
from oomdoctor.record import dataclass, field
from oomdoctor.recorder.hearing import process_of
from oomdoctor.recorder.places import (
    EVENTS_FILE,
    PROCESSES,
    RUN_FILE,
    SAMPLES_FILE,
    content_of,
    finite,
    parsed,
)
from oomdoctor.recorder.shapes import MESSAGE, RUN, SAMPLE, message_of, misfits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from oomdoctor.recorder.shapes import Shape
    from oomdoctor.recorder.told import Process

    Message: TypeAlias = dict[str, Any]

ON_MACHINE, IN_GROUP = "on_machine", "in_group"
"""Where the kernel counts what it kills for memory."""
_MOST_SAMPLES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was seen from outside at one moment, `t` seconds after the start of the command."""

    t: float
    line: int
    host: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[Mapping[str, Any], ...] = ()
    devices: tuple[Mapping[str, Any], ...] = ()

    @property
    def job_bytes(self) -> int | None:
        """What all processes hold on the host; None where shared pages may be counted twice."""
        told = [one.get("pss_bytes") for one in self.processes]
        known: list[int] = [one for one in told if one is not None]
        if known and len(known) == len(told):
            return sum(known)
        alone: int | None = self.processes[0].get("rss_bytes") if len(told) == 1 else None
        return alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run; `told` is run.json, `skipped` counts lines that could not be read.

    `misfits` say which entries of run.json were left out, and why.

    `alive` says that it is still recorded. Without an end that is told, its recorder was killed.
    """

    folder: Path
    told: Mapping[str, Any]
    processes: tuple[Process, ...] = ()
    samples: tuple[Sample, ...] = ()
    skipped: int = 0
    misfits: tuple[str, ...] = ()
    alive: bool = False

    @property
    def id(self) -> str:
        """The name of the run."""
        return str(self.told.get("id") or self.folder.name)

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command."""
        return tuple(self.told.get("command") or ())

    @property
    def started(self) -> float | None:
        """When it began, in seconds since 1970."""
        return started_of(self.told)

    @property
    def has_ended(self) -> bool:
        """Whether its end was seen."""
        return self.told.get("ended") is not None

    @property
    def seconds(self) -> float | None:
        """How long it took, or as long as is known."""
        found = finite(self.told.get("seconds"))
        if found is not None:
            return found
        return max((one.t for one in self.samples), default=None)

    @property
    def exit_code(self) -> int | None:
        """The exit code as a shell tells it."""
        return self.told.get("exit_code")

    @property
    def signal(self) -> int | None:
        """The signal that ended the command itself."""
        return self.told.get("signal")

    @property
    def working(self) -> tuple[Process, ...]:
        """The processes that train, evaluate or generate, by rank; all that spoke if none does."""
        found = [one for one in self.processes if one.works] or list(self.processes)
        return tuple(sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.pid)))

    def kills(self, where: str) -> int | None:
        """Return how many processes the kernel killed for memory: ON_MACHINE, or IN_GROUP."""
        found: int | None = (self.told.get("kernel_kills") or {}).get(where)
        return found

    def pids(self) -> frozenset[int]:
        """Return the numbers of all processes that are known to belong to the run."""
        seen = {one.get("pid") for sample in self.samples for one in sample.processes}
        seen |= {one.pid for one in self.processes}
        seen.add((self.told.get("process") or {}).get("pid"))
        return frozenset(one for one in seen if one is not None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of the bundle could not be read, in words."""
        lines = f"{self.skipped} damaged lines of the bundle were left out."
        entries = (f"{RUN_FILE}: {one}; this was left out." for one in self.misfits)
        return (*entries, *((lines,) if self.skipped else ()))


def read_bundle(folder: Path) -> Run:
    """Read a bundle, finished or not; InputError where it is none."""
    told, wrong = _told(folder)
    samples, skipped = _samples(folder)
    found = []
    for path in sorted((folder / PROCESSES).glob(f"*/{EVENTS_FILE}")):
        lines, left_out = _lines(path, MESSAGE)
        skipped += left_out
        if lines:
            found.append(process_of(path.parent.name, lines))
    return Run(
        folder=folder,
        told=told,
        processes=tuple(sorted(found, key=lambda one: one.key)),
        samples=samples,
        skipped=skipped,
        misfits=wrong,
        alive=is_alive(told),
    )


def messages_of(run: Run) -> list[tuple[float, str | None, Message]]:
    """Return all that was told, with its moment (seconds after the start) and the process's key.

    Samples have no key.
    """
    found: list[tuple[float, str | None, Message]] = []
    for _, sample in _lines(run.folder / SAMPLES_FILE, SAMPLE)[0]:
        found.append((moment_of(None, sample, run.started), None, sample))
    for process in run.processes:
        found += [(moment, process.key, one) for moment, one in told_by(run, process)]
    return found


def told_by(run: Run, process: Process) -> list[tuple[float, Message]]:
    """Return what one process told, with its moment (seconds after the start of the run)."""
    lines, _ = _lines(run.folder / PROCESSES / process.key / EVENTS_FILE, MESSAGE)
    for _, message in lines:
        message.setdefault("pid", process.pid)
    return [(moment_of(process.key, one, run.started), one) for _, one in lines]


def moment_of(key: str | None, message: Message, started: float | None) -> float:
    """Return when a message was told, in seconds after the start: samples count from there."""
    told = finite(message.get("t"))
    if told is None or key is None or started is None:
        return told or 0.0
    return told - started


def read_told(folder: Path) -> Message:
    """Return what run.json tells; InputError where it is none."""
    return _told(folder)[0]


def _told(folder: Path) -> tuple[Message, tuple[str, ...]]:
    """Return run.json, and which of its entries were left out, and why."""
    place = Location(path=str(folder / RUN_FILE))
    try:
        told = parsed((folder / RUN_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror}", location=place) from error
    except ValueError as error:
        raise InputError(f"this is no file of a run: {error}", location=place) from error
    if not isinstance(told, dict):
        raise InputError("this is no file of a run: no object", location=place)
    wrong = {
        name: next(misfits({name: value}, RUN))
        for name, value in told.items()
        if any(misfits({name: value}, RUN))
    }
    return {name: told[name] for name in told if name not in wrong}, tuple(wrong.values())


def is_alive(told: Mapping[str, Any]) -> bool:
    """Say whether a run is still recorded: it has no end, and its recorder lives."""
    recorder = told.get("recorder")
    if told.get("ended") is not None or not isinstance(recorder, dict):
        return False
    found = None if recorder.get("pid") is None else live.stat(recorder["pid"])
    return found is not None and recorder.get("start") in (None, found.start_ticks)


def _samples(folder: Path) -> tuple[tuple[Sample, ...], int]:
    lines, skipped = _lines(folder / SAMPLES_FILE, SAMPLE)
    found = []
    for number, one in lines[:_MOST_SAMPLES]:
        found.append(
            Sample(
                t=finite(one.get("t")) or 0.0,
                line=number,
                host=one.get("host") or {},
                processes=tuple(one.get("processes") or ()),
                devices=tuple(one.get("devices") or ()),
            )
        )
    return tuple(found), skipped


def _lines(path: Path, shape: Shape) -> tuple[list[tuple[int, Message]], int]:
    """Return the objects of a file with their lines, and how many lines were none."""
    found: list[tuple[int, Message]] = []
    skipped = 0
    for number, line in enumerate(content_of(path).split(b"\n"), start=1):
        if not line.strip():
            continue
        one = message_of(line, shape)
        if one is None:
            skipped += 1
        else:
            found.append((number, one))
    return found, skipped


def started_of(told: Mapping[str, Any]) -> float | None:
    """Return when a run began by its run.json, in seconds since 1970."""
    try:
        return datetime.fromisoformat(str(told.get("started"))).timestamp()
    except (ValueError, OverflowError):
        return None
