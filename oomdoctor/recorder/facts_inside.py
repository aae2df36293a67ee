"""What the processes of a run told, as facts: where it was, its peaks, how its memory grew."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.facts.registry import specs
from oomdoctor.growth.book import Book
from oomdoctor.growth.findings import DEVICE, findings
from oomdoctor.growth.verdict import Kind
from oomdoctor.recorder.balance import card_bytes
from oomdoctor.recorder.bundle import messages_of
from oomdoctor.recorder.facts_job import job_facts
from oomdoctor.recorder.outcome import SUCCEEDED
from oomdoctor.recorder.places import PROCESSES, content_of, parsed
from oomdoctor.recorder.quoting import seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.growth.findings import Finding
    from oomdoctor.model.core import Fact
    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.outcome import Outcome
    from oomdoctor.recorder.quoting import Quoting
    from oomdoctor.recorder.told import Process

_LOAD = "load"
_PHASES = {_LOAD: "load", "evaluation": "eval", "save": "save", "generation": "generate"}
_RESERVED = (Kind.CACHE_GROWTH, Kind.FRAGMENTATION)


def facts_inside(run: Run, outcome: Outcome, quoting: Quoting) -> Iterator[Fact]:
    """Yield the facts of the process that the outcome is about."""
    process = process_of_outcome(run, outcome)
    if process is None:
        return
    if outcome.word != SUCCEEDED:
        yield from _where(process, quoting)
    yield from _peaks(process, quoting)
    yield from _versions(run, process, quoting)
    yield from growth_facts(run, process, quoting)
    yield from job_facts(run, process, quoting)


def process_of_outcome(run: Run, outcome: Outcome) -> Process | None:
    """Return the process where memory ran out, else the one that holds most."""
    found = run.working
    failed = [one for one in found if any(not oom.went_on for oom in one.ooms)]
    of_rank = [one for one in failed or found if one.rank == outcome.rank]
    return max(of_rank or failed or found, key=_highest_bytes, default=None)


def _highest_bytes(process: Process) -> int:
    peaks = [one.peak_allocated_bytes or one.host_bytes or 0 for one in process.phases]
    return max(peaks, default=0)


def _where(process: Process, quoting: Quoting) -> Iterator[Fact]:
    """Yield the step, the phase and the rank of the end."""
    if process.steps:
        last = process.steps[-1]
        yield seen("run.step", last.number, quoting.event(process.key, last.line, "number"))
    phase = _PHASES.get(process.phase or "")
    # "load" is all that comes before a model is first called, which a program without a model
    # never does: where there is a traceback, that one tells what was under way
    if phase is not None and not (process.phase == _LOAD and process.errors):
        quote = quoting.event(process.key, process.last_line, "phase")
        yield seen("run.phase", phase, quote)
    if process.rank is not None:
        quote = quoting.event(process.key, process.last_line, "rank")
        yield seen("run.rank", process.rank, quote)


def _peaks(process: Process, quoting: Quoting) -> Iterator[Fact]:
    for key, name in (
        ("torch.peak_allocated", "peak_allocated_bytes"),
        ("torch.peak_reserved", "peak_reserved_bytes"),
    ):
        known = [one for one in process.phases if getattr(one, name) is not None]
        best = max(known, key=lambda one: getattr(one, name), default=None)
        if best is not None:
            quote = quoting.event(process.key, best.line, name)
            yield seen(key, getattr(best, name), quote)


def _versions(run: Run, process: Process, quoting: Quoting) -> Iterator[Fact]:
    """Yield versions: those that a dump lists, else those that the process told first."""
    found = dict(process.versions)
    for oom in process.ooms:
        if oom.folder is not None:
            path = run.folder / PROCESSES / process.key / oom.folder / "versions.json"
            with suppress(ValueError):
                told = parsed(content_of(path))
                if isinstance(told, dict):
                    found.update({str(name): str(one) for name, one in told.items()})
    known = specs()
    for name, version in found.items():
        key = f"env.{name}"
        if key in known:
            yield seen(key, version, quoting.event(process.key, 1, "versions"))


def growth_facts(run: Run, process: Process, quoting: Quoting) -> Iterator[Fact]:
    """Yield growth.*: the verdict on the floors of windows of steps, the device's first."""
    best = next(iter(growth_of(run, process.pid)), None)
    growth = None if best is None else best.verdict.growth
    if best is None or growth is None or best.verdict.kind is Kind.EARLY or not best.by_step:
        return
    quantity = "host"
    if best.memory == DEVICE:
        quantity = "reserved" if best.verdict.kind in _RESERVED else "allocated"
    name = {"host": "rss_bytes"}.get(quantity, f"{quantity}_bytes")
    steps = [one for one in process.steps if growth.since <= one.number <= growth.until]
    if not steps:
        return
    quotes = tuple(quoting.event(process.key, one.line, name) for one in (steps[0], steps[-1]))
    how = f"floors of windows of steps {growth.since:.0f} to {growth.until:.0f}"
    yield seen("growth.quantity", quantity, *quotes, source=how)
    yield seen("growth.points", len(steps), *quotes, source=how)
    yield seen("growth.monotone", growth.rises, *quotes, source=how)
    yield seen("growth.first", growth.first, quotes[0], source=how)
    yield seen("growth.last", growth.last, quotes[-1], source=how)
    yield seen("growth.span", round(growth.until - growth.since), *quotes, source=how)
    yield seen("growth.per_step", round(growth.slope), *quotes, source=how)
    whole = card_bytes(run)
    if quantity == "allocated" and whole:
        share = max(0.0, (growth.last - growth.first) / whole) if growth.rises else 0.0
        yield seen("growth.leaked_share", share, *quotes, source=how)


def growth_of(run: Run, pid: int | None = None) -> tuple[Finding, ...]:
    """Return the verdicts on how memory grew, those of one process, or of all."""
    book = book_of(run)
    found = findings(book)
    return found if pid is None else tuple(one for one in found if one.pid == pid)


def book_of(run: Run) -> Book:
    """Return all that is known of a run in the order of time."""
    book = Book(run.started)
    told = sorted(messages_of(run), key=lambda one: one[0])
    book.put([(key, message) for _, key, message in told])
    return book
