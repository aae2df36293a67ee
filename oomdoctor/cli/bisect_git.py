"""One trial that speaks the language of `git bisect run`: did this commit raise memory too far?

0 fits (good), 1 out of memory (bad), 125 cannot tell (the commit is skipped).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from oomdoctor.cli.bisect_live import shown_trials
from oomdoctor.cli.bisect_places import executor_of, opened
from oomdoctor.cli.bisect_run import again, endable
from oomdoctor.cli.bisect_setup import setup_of
from oomdoctor.cli.output import say
from oomdoctor.errors import GuardError, UsageError
from oomdoctor.lab.drive import Drive
from oomdoctor.lab.journal import ROOT, Journal
from oomdoctor.model.trial import FIT, HOST_OOM, OOM, TrialResult
from oomdoctor.search.rounds import Ask, Stopped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.search.rounds import Search

GOOD, BAD, SKIP = 0, 1, 125
INTERRUPTED = 130  # above 127: `git bisect run` gives up
WRONG = 128


def git_bisect(values: Mapping[str, object], *, stdin: BinaryIO | None) -> int:
    """Return the exit status of one trial at the values of the axes."""
    asked = cast("Asked", values)
    try:
        setup = setup_of(values, stdin=stdin)
        ask = _ask(setup, named=bool(asked["axis"]))
    except Exception as error:  # noqa: BLE001 - any other status would mark the commit
        say(f"error: {error}")
        return WRONG
    try:
        result = _trial(setup, asked, ask)
    except GuardError as error:
        say(f"error: {error}")
        return SKIP
    except KeyboardInterrupt:
        return INTERRUPTED
    status = status_of(result, on_host=setup.on_host)
    if status == SKIP and result is not None:
        say(f"cannot tell: {result.outcome}: {result.reason}")
    return status


def status_of(result: TrialResult | None, *, on_host: bool) -> int:
    """Return what a trial says of a commit; memory of the other kind says nothing."""
    if result is None:
        return SKIP
    bad = HOST_OOM if on_host else OOM
    return {FIT: GOOD, bad: BAD}.get(result.outcome, SKIP)


def _ask(setup: Setup, *, named: bool) -> Ask:
    """Return the one trial; UsageError where an axis has more than one value."""
    axes = setup.axes if named else ()
    wide = [one.name for one in axes if one.count != 1]
    if wide:
        raise UsageError(
            f"--git-bisect makes one trial, and {', '.join(wide)} has many values",
            hint=f"give one, such as --axis {wide[0]}=8",
        )
    return Ask(values={one.name: one.value(0) for one in axes})


def _one(ask: Ask) -> Search[TrialResult | None]:
    try:
        results = yield (ask,)
    except Stopped:
        return None
    return results[0]


def _trial(setup: Setup, asked: Asked, ask: Ask) -> TrialResult | None:
    with endable(), opened(setup, asked) as found:
        # the same command is another one at each commit: nothing is ever taken from a journal
        plan = setup.plan_digest(commit=f"{time.time_ns()} {os.getpid()}")
        journal = Journal.create(Path(ROOT), plan, arguments=again(), started=time.time())
        try:
            with (
                executor_of(setup, asked, found.places, journal.folder) as executor,
                shown_trials(quiet=asked["quiet"]) as tells,
            ):
                drive = Drive(executor, journal, spec_of=setup.spec_of(found.allowed), tells=tells)
                driven = drive.run(_one(ask))
        finally:
            journal.close()
    if driven.refused is not None:
        raise driven.refused
    if driven.interrupted:
        raise KeyboardInterrupt
    return driven.answer
