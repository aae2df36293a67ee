"""One run of `confirm`: the plan, its trials behind guards and a journal, and the verdicts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from oomdoctor.cli.bisect_backend import VIRTUAL
from oomdoctor.cli.bisect_live import shown_trials
from oomdoctor.cli.bisect_places import executor_of, opened
from oomdoctor.cli.bisect_run import Tally, again, allowed_then, caps_of, endable, record
from oomdoctor.cli.confirm_case import wanted_of
from oomdoctor.experiments.plan import plan, price
from oomdoctor.experiments.posterior import reranked
from oomdoctor.experiments.trials import Trials
from oomdoctor.lab.drive import Budget, Drive
from oomdoctor.lab.journal import ROOT, Journal, latest_run
from oomdoctor.model.confirm import Confirmed, MinimalFixes, PlannedTest
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from oomdoctor.cli.bisect import Asked as BisectAsked
    from oomdoctor.cli.bisect_places import Opened
    from oomdoctor.cli.confirm import Asked
    from oomdoctor.cli.confirm_case import Wanted
    from oomdoctor.errors import GuardError
    from oomdoctor.experiments.plan import Planned
    from oomdoctor.experiments.trials import Verdicts
    from oomdoctor.lab.drive import Driven


WITHOUT_A_CARD = ("simulate", "cpu", VIRTUAL)
"""Back ends that have memory for a run without its cap."""


class Outcome(NamedTuple):
    """What came of a run, and why it ended before it was done, if it did."""

    made: Confirmed
    refused: GuardError | None
    interrupted: bool


def planned(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Confirmed:
    """Return the plan of a run and its price; nothing runs."""
    asked = cast("Asked", values)
    wanted = wanted_of(values, stdin=stdin)
    with opened(wanted.setup, cast("BisectAsked", values)) as found:
        subject = wanted.subject(asked, found.allowed)
        return _head(wanted, found, plan(wanted.case.suspects, subject))


def confirmed(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Outcome:
    """Return what the run that a command line asks for comes to."""
    asked = cast("Asked", values)
    wanted = wanted_of(values, stdin=stdin)
    causes = [one.cause for one in wanted.case.suspects]
    digest = wanted.setup.plan_digest(confirm=causes, treated=asked["treated"])
    earlier = latest_run(Path(ROOT), digest) if asked["resume"] else None
    then = None if earlier is None else allowed_then(earlier)
    with endable(), opened(wanted.setup, cast("BisectAsked", values), then) as found:
        if earlier is not None:
            journal = Journal.resume(earlier)
        else:
            journal = Journal.create(
                Path(ROOT),
                digest,
                arguments=again("confirm"),
                started=time.time(),
                facts=caps_of(found.allowed),
            )
        try:
            record(journal, wanted.setup, found)
            return _driven(wanted, values, found, journal)
        finally:
            journal.close()


def _driven(
    wanted: Wanted, values: Mapping[str, object], found: Opened, journal: Journal
) -> Outcome:
    asked = cast("Asked", values)
    began = time.monotonic()
    subject = wanted.subject(asked, found.allowed)
    tests = plan(wanted.case.suspects, subject)
    trials = Trials(
        subject,
        tests,
        cap_bytes=subject.spec.cap_bytes,
        measures_whole=wanted.setup.backend in WITHOUT_A_CARD,
        wanted=wanted.case.wanted,
    )
    with (
        executor_of(wanted.setup, cast("BisectAsked", values), found.places, journal.folder) as run,
        shown_trials(quiet=asked["quiet"]) as tells,
    ):
        tally = Tally(tells)
        drive = Drive(
            run,
            journal,
            spec_of=trials.spec_of,
            tells=tally,
            budget=Budget(
                trials=asked["max_trials"],
                seconds=asked["max_seconds"],
                trial_seconds=asked["trial_seconds"],
            ),
        )
        driven: Driven[Verdicts] = drive.run(trials.search(minimal=asked["minimal"]))
    made = _made(wanted, found, tests, driven.answer)
    made = replace(
        made,
        minimal=_minimal(trials, driven.answer, asked["write_config"]),
        replayed=tally.replayed,
        seconds=time.monotonic() - began,
        folder=str(journal.folder),
    )
    return Outcome(made, driven.refused, driven.interrupted)


def _made(wanted: Wanted, found: Opened, tests: Sequence[Planned], verdicts: Verdicts) -> Confirmed:
    codes = {one.cause: one.code for one in wanted.case.suspects}
    confirmations = tuple(replace(one, code=codes.get(one.cause)) for one in verdicts.confirmations)
    return replace(
        _head(wanted, found, tests),
        confirmations=confirmations,
        after=reranked(wanted.case.probabilities, confirmations),
        trials=verdicts.trials,
        stopped=verdicts.stopped,
    )


def _head(wanted: Wanted, found: Opened, tests: Sequence[Planned]) -> Confirmed:
    setup, allowed = wanted.setup, found.allowed
    costs = price(tests)
    return Confirmed(
        backend=setup.backend,
        planned=tuple(_test(one) for one in tests),
        before=wanted.case.probabilities,
        job=setup.job if setup.template is None else None,
        command=setup.command_at({}),
        card=setup.card_words(allowed),
        cap_bytes=allowed.cap_bytes,
        host_cap_bytes=allowed.host_cap_bytes,
        trials_at_most=costs.trials,
        failing=costs.failing,
        notes=(*setup.notes, *allowed.notes),
    )


def _test(one: Planned) -> PlannedTest:
    experiment = one.experiment
    return PlannedTest(
        cause=one.suspect.cause,
        probability=one.suspect.probability,
        code=one.suspect.code,
        experiment=None if experiment is None else experiment.name,
        title="" if experiment is None else experiment.title,
        way=one.way,
        reason=one.reason,
    )


def _minimal(trials: Trials, verdicts: Verdicts, folder: str | None) -> MinimalFixes | None:
    """Return the cheapest changes in words, and write the configs with them."""
    fixes = verdicts.fixes
    if fixes is None:
        return None
    written: tuple[str, ...] = ()
    if folder is not None and fixes.fits:
        written = trials.write_configs(fixes.changes, Path(folder))
    return MinimalFixes(
        names=fixes.changes,
        titles=tuple(trials.titles[name] for name in fixes.changes),
        fits=fixes.fits,
        proven=fixes.proven,
        unresolved=fixes.unresolved,
        reason=fixes.reason or fixes.stopped or "",
        patched=written,
    )
