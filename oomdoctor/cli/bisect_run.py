"""One run of `bisect`: guarded places, a journal, the search through its trials, its report."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from oomdoctor import __version__
from oomdoctor.cli.bisect_command import GIVEN
from oomdoctor.cli.bisect_live import shown_trials
from oomdoctor.cli.bisect_places import executor_of, opened
from oomdoctor.cli.bisect_search import begun
from oomdoctor.cli.bisect_setup import setup_of
from oomdoctor.lab.drive import Budget, Drive
from oomdoctor.lab.guard import Allowed
from oomdoctor.lab.journal import (
    JOURNAL,
    ROOT,
    Journal,
    latest_run,
    read_journal,
    write_environment,
)
from oomdoctor.model.bisect import AxisRange, Bisected
from oomdoctor.model.trial import Frontier, SearchAnswer
from oomdoctor.record import NamedTuple, replace
from oomdoctor.search.fastest import fastest_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_places import Opened
    from oomdoctor.cli.bisect_search import Begun
    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.errors import GuardError
    from oomdoctor.lab.drive import Driven, Tells
    from oomdoctor.model.trial import TrialResult, TrialSpec
    from oomdoctor.search.axes import Axis

RESUME = "--resume"
_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Outcome(NamedTuple):
    """What came of a run, and why it ended before it was done, if it did."""

    made: Bisected
    refused: GuardError | None
    interrupted: bool


def bisected(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Outcome:
    """Return what the run that a command line asks for comes to."""
    asked = cast("Asked", values)
    setup = setup_of(values, stdin=stdin)
    plan = setup.plan_digest(objective=asked["objective"])
    earlier = latest_run(Path(ROOT), plan) if asked["resume"] else None
    then = None if earlier is None else allowed_then(earlier)
    with endable(), opened(setup, asked, then) as found:
        if earlier is not None:
            journal = Journal.resume(earlier)
        else:
            caps = caps_of(found.allowed)
            journal = Journal.create(
                Path(ROOT), plan, arguments=again(), started=time.time(), facts=caps
            )
        try:
            record(journal, setup, found)
            return _driven(setup, asked, found, journal)
        finally:
            journal.close()


def _driven(setup: Setup, asked: Asked, found: Opened, journal: Journal) -> Outcome:
    began = time.monotonic()
    with (
        executor_of(setup, asked, found.places, journal.folder) as executor,
        shown_trials(quiet=asked["quiet"]) as tells,
    ):
        wanted = begun(setup, asked, found.allowed, width=executor.width)
        tally = Tally(tells)
        drive = Drive(
            executor,
            journal,
            spec_of=setup.spec_of(found.allowed),
            tells=tally,
            budget=Budget(
                trials=asked["max_trials"],
                seconds=asked["max_seconds"],
                trial_seconds=asked["trial_seconds"],
            ),
        )
        driven = drive.run(wanted.search)
        width = executor.width
    made = _made(setup, found, wanted, driven)
    made = replace(
        made,
        replayed=tally.replayed,
        seconds=time.monotonic() - began,
        folder=str(journal.folder),
        executor=asked["executor"] or "one",
        width=width,
    )
    return Outcome(made, driven.refused, driven.interrupted)


class Tally:
    """Counts the trials that came from a journal, and passes all on to who shows them."""

    def __init__(self, tells: Tells) -> None:
        """Have counted none yet."""
        self.replayed = 0
        self._tells = tells

    def began(self, spec: TrialSpec) -> None:
        """Pass on that a trial starts."""
        self._tells.began(spec)

    def heard(self, spec: TrialSpec, text: str) -> None:
        """Pass on where a trial is."""
        self._tells.heard(spec, text)

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        """Count and pass on what came of a trial."""
        self.replayed += replayed
        self._tells.ended(result, replayed=replayed)


def _made(
    setup: Setup, found: Opened, wanted: Begun, driven: Driven[SearchAnswer | Frontier]
) -> Bisected:
    answer = driven.answer if isinstance(driven.answer, SearchAnswer) else None
    frontier = driven.answer if isinstance(driven.answer, Frontier) else None
    allowed = found.allowed
    best = None if answer is None else answer.best
    return Bisected(
        backend=setup.backend,
        axes=tuple(range_of(one) for one in setup.axes),
        answer=answer,
        frontier=frontier,
        best=best if frontier is None else fastest_of(frontier),
        job=setup.job if setup.template is None else None,
        command=setup.command_at({}),
        card=setup.card_words(allowed),
        cap_bytes=allowed.cap_bytes,
        limit_bytes=wanted.limit_bytes,
        host_cap_bytes=allowed.host_cap_bytes,
        start=wanted.start,
        trials=driven.answer.trials,
        stopped=driven.answer.stopped,
        notes=(*setup.notes, *allowed.notes),
    )


def range_of(axis: Axis) -> AxisRange:
    """Return an axis as reports show it."""
    return AxisRange(
        name=axis.name, low=axis.low, high=axis.high, step=axis.step, memory=axis.memory
    )


def again(command: str = "bisect") -> tuple[str, ...]:
    """Return the command line that starts this run again from its beginning."""
    context = click.get_current_context()
    words = [one for one in context.meta.get(GIVEN, ()) if one != RESUME]
    return (sys.executable, "-m", "oomdoctor", context.info_name or command, *words)


_CAPS = ("cap_bytes", "host_cap_bytes")


def caps_of(allowed: Allowed) -> dict[str, int | None]:
    """Return the caps of a run as its journal keeps them."""
    return {name: getattr(allowed, name) for name in _CAPS}


def allowed_then(folder: Path) -> Allowed:
    """Return the caps that the earlier part of a run had."""
    head = read_journal(folder / JOURNAL).head
    facts = head.get("facts")
    found = facts if isinstance(facts, dict) else {}
    cap, host_cap = (found.get(name) for name in _CAPS)
    return Allowed(
        cap_bytes=cap if isinstance(cap, int) else None,
        host_cap_bytes=host_cap if isinstance(host_cap, int) else None,
    )


def record(journal: Journal, setup: Setup, found: Opened) -> None:
    """Write down where a run takes place."""
    facts = {
        "oomdoctor": __version__,
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "backend": setup.backend,
        "cards": list(found.allowed.names),
        "devices": list(found.allowed.devices),
        "cap_bytes": found.allowed.cap_bytes,
        "host_cap_bytes": found.allowed.host_cap_bytes,
        "packages": _packages(),
    }
    write_environment(journal.folder, facts, os.environ)


def _packages() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("torch", "transformers", "peft", "accelerate", "trl", "deepspeed", "ray"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@contextmanager
def endable() -> Iterator[None]:
    """Let a request to terminate (of a batch system, say) end a run as Ctrl-C does.

    So does a terminal that is closed, unless nohup has made the run independent of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    heard = [one for one in _ENDS if signal.getsignal(one) != signal.SIG_IGN]
    before = [signal.signal(one, interrupt) for one in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)
