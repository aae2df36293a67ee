"""The page of a recorded run: what came of it, its peaks by phase, its memory over time."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from oomdoctor.growth.verdict import Level
from oomdoctor.recorder import balance
from oomdoctor.recorder.facts_inside import growth_of
from oomdoctor.recorder.outcome import RUNNING, SUCCEEDED, WORDS
from oomdoctor.recorder.places import word_of
from oomdoctor.render.page import Figure, Page, Section, Table
from oomdoctor.render.run_timeline import timeline_of
from oomdoctor.render.watch_words import duration, headline, sentences
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.recorder.balance import Peak
    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.diagnosing import Examined
    from oomdoctor.recorder.told import Process

_LONGEST_COMMAND = 300
_MOST_PROCESSES = 32
_NO_PROMISE = "These are the peaks of this run: a longer row or a later phase may need more."


def run_page(examined: Examined) -> Page:
    """Return the page of a run without its diagnosis."""
    run, outcome = examined.run, examined.outcome
    role = {SUCCEEDED: "good", RUNNING: "open"}.get(outcome.word, "bad")
    return Page(
        title=f"{word_of(run.command)}: {WORDS[outcome.word]}",
        lead=(f"{outcome.why[:1].upper()}{outcome.why[1:]}.".replace("..", "."),),
        figures=tuple(_figures(run)),
        sections=tuple(run_sections(run)),
        notes=tuple(_notes(examined)),
        role=role,
        badges=(f"run {run.id}",),
    )


def run_sections(run: Run) -> Iterator[Section]:
    """Yield the sections that tell of a run."""
    timeline = timeline_of(run)
    if timeline is not None:
        yield Section(title="Memory over the run", timeline=timeline)
    phases = _phases(run)
    if phases is not None:
        yield phases
    yield from _growth(run)
    if len(run.working) > 1 or any(one.ooms for one in run.working):
        yield _processes(run)
    happened = tuple(_happened(run))
    if happened:
        yield Section(title="What happened", sentences=happened)


def _figures(run: Run) -> Iterator[Figure]:
    yield Figure("Command", shlex.join(run.command)[:_LONGEST_COMMAND])
    started, seconds = str(run.told.get("started") or "?"), run.seconds
    yield Figure("Started", started[:19].replace("T", " "))
    if seconds is not None:
        meaning = "" if run.has_ended else "known so far"
        yield Figure("Took", duration(seconds), meaning)
    if run.exit_code is not None:
        yield Figure("Exit code", str(run.exit_code))
    steps = balance.steps(run)
    if steps is not None:
        yield Figure("Steps", format_count(steps), "optimizer steps of every rank")
    allocated, reserved = balance.allocated_peak(run), balance.reserved_peak(run)
    if allocated is not None:
        yield Figure("Device peak", format_size(allocated.bytes), _meaning(allocated, "allocated"))
    if reserved is not None:
        yield Figure("Reserved peak", format_size(reserved.bytes), _meaning(reserved, "by torch"))
    host = balance.host_peak(run)
    if host is not None:
        yield Figure("Host peak", format_size(host.bytes), _meaning(host, "resident, as seen"))

    least = balance.least_available(run)
    if least is not None:
        whole = "" if least.limit_bytes is None else f"of {format_size(least.limit_bytes)}"
        yield Figure("Host left", format_size(least.bytes), f"the least that was seen, {whole}")


def _meaning(peak: Peak, what: str) -> str:
    parts = [what]
    if peak.rank is not None:
        parts.append(f"rank {peak.rank}")
    if peak.left_bytes is not None and peak.limit_bytes is not None:
        left = format_size(max(0, peak.left_bytes))
        # contexts, libraries and others have their part of the rest
        parts.append(f"at most {left} of {format_size(peak.limit_bytes)} left")
    return ", ".join(parts)


def _phases(run: Run) -> Section | None:
    """Return the peaks by phase, of the rank that holds most in each."""
    names = list(dict.fromkeys(one.name for process in run.working for one in process.phases))
    if not names:
        return None
    rows = []
    for name in names:
        found = [one for process in run.working for one in process.phases if one.name == name]
        rows.append(
            (
                name,
                duration(max(one.seconds for one in found)),
                _size(one.peak_allocated_bytes for one in found),
                _size(one.peak_reserved_bytes for one in found),
                _size(one.host_bytes for one in found),
            )
        )
    succeeded = run.exit_code == 0
    return Section(
        title="Peaks by phase",
        sentences=(_NO_PROMISE,) if succeeded else (),
        table=Table(
            caption="The highest of all ranks in each phase, as the processes measured it",
            headers=("phase", "time", "allocated", "reserved", "host"),
            rows=tuple(rows),
            numeric=frozenset({1, 2, 3, 4}),
        ),
    )


def _growth(run: Run) -> Iterator[Section]:
    told = [one for one in growth_of(run) if one.verdict.level > Level.QUIET]
    if told:
        lines = []
        for one in told:
            detail = " ".join(sentences(one, is_over=run.has_ended))
            lines.append(f"{headline(one)}. {detail}".strip())
        yield Section(title="Growth", sentences=tuple(lines))


def _processes(run: Run) -> Section:
    shown = run.working[:_MOST_PROCESSES]
    return Section(
        title="Processes",
        table=Table(
            caption="Processes that trained, evaluated or generated, and where they were last",
            headers=("rank", "process", "steps", "last phase", "allocated", "host", "end"),
            rows=tuple(_row(one) for one in shown),
            numeric=frozenset({0, 1, 2, 4, 5}),
            marked=frozenset(number for number, one in enumerate(shown) if one.ooms),
        ),
    )


def _row(process: Process) -> tuple[str, ...]:
    return (
        "-" if process.rank is None else str(process.rank),
        str(process.pid),
        format_count(process.steps[-1].number) if process.steps else "0",
        process.phase or "-",
        _size(one.peak_allocated_bytes for one in process.phases),
        _size(one.host_bytes for one in process.phases),
        _end(process),
    )


def _end(process: Process) -> str:
    if process.ooms and not process.ooms[-1].went_on:
        return "out of memory"
    if process.errors:
        return process.errors[-1].exception
    return "came to its own end" if process.exited else "ended without a word"


def _happened(run: Run) -> Iterator[str]:
    """Yield silences and signals."""
    last = run.told.get("silence")
    for one in (*(run.told.get("silences") or ()), *((last,) if last else ())):
        seconds = one.get("seconds")
        worked = "worked" if one.get("worked") else "waited"
        length = "long" if seconds is None else duration(seconds)
        yield f"Nothing was printed and no step was made for {length}; its processes {worked}."
        rows = one.get("processes") or ()
        waits = sorted({row["waits_in"] for row in rows if row.get("waits_in")})
        if waits:
            yield f"They waited in the kernel's {', '.join(waits[:4])}."
    for one in run.told.get("signals") or ():
        by = "the terminal" if one.get("terminal") else one.get("sender") or "another process"
        passed = "was passed on" if one.get("passed_on") else "reached the command, too"
        yield f"At {one.get('t')} s signal {one.get('signal')} came from {by} and {passed}."
    for process in run.working:
        yield from (f"A hook said: {note}" for note in process.notes[:3])


def _notes(examined: Examined) -> Iterator[str]:
    run = examined.run
    if run.told.get("virtual"):
        yield f"It ran on a virtual card: {run.told['virtual']}. Times mean nothing there."
    if not run.has_ended and not run.alive:
        yield "Its end is not told: the recorder was killed first, or could not write (disk full?)."
    if not run.processes:
        yield "No Python process that imports torch told anything from inside."
    yield from run.left_out


def _size(values: Iterator[int | None]) -> str:
    known = [one for one in values if one is not None]
    return format_size(max(known)) if known else "-"
