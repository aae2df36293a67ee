"""Which experiments separate the leading causes, what each would run, and what all of it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.arms import treated_spec, way_of
from oomdoctor.experiments.catalogue import experiments_of
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.experiments.arms import Subject
    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.trial import TrialSpec

LEAST_PROBABILITY = 0.05
MOST_CAUSES = 4
ARMS = 3
"""Trials of an experiment at most, where nothing is near the edge: baseline, treated, control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A cause to put to the test: its probability by what was read, and the rule that names it."""

    cause: str
    probability: float
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A suspect with the experiment for it; without one, `reason` says why there is none.

    `way` says in words how the run is changed.
    """

    suspect: Suspect
    experiment: Experiment | None = None
    treated: TrialSpec | None = None
    way: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a plan costs at most: trials, how many of them fail on purpose, and seconds."""

    trials: int
    failing: int
    seconds: float | None = None


def plan(suspects: Sequence[Suspect], subject: Subject) -> tuple[Planned, ...]:
    """Return an experiment for each of the leading suspects, the one that tells most first.

    One that speaks of a single suspect is preferred: it separates it from the others. A changed
    command of the user's own stands for the first suspect alone.
    """
    leading = [one for one in suspects if one.probability >= LEAST_PROBABILITY][:MOST_CAUSES]
    names = [one.cause for one in leading]
    ours = replace(subject, treated=None)
    planned = [
        _planned(one, names, subject if number == 0 else ours) for number, one in enumerate(leading)
    ]
    return tuple(sorted(planned, key=_telling))


def price(planned: Sequence[Planned], seconds_per_trial: float | None = None) -> Price:
    """Return what a plan costs; experiments of the same length share their baseline."""
    experiments = [one.experiment for one in planned if one.experiment is not None]
    baselines = len({(one.steps, one.evaluates, one.saves) for one in experiments})
    trials = baselines + (ARMS - 1) * len(experiments)
    seconds = None if seconds_per_trial is None else trials * seconds_per_trial
    return Price(trials=trials, failing=baselines + len(experiments), seconds=seconds)


def _planned(suspect: Suspect, names: Sequence[str], subject: Subject) -> Planned:
    known = experiments_of(suspect.cause)
    if not known:
        return Planned(suspect=suspect, reason="no experiment is known for this cause")
    for one in sorted(known, key=lambda one: sum(name in one.causes for name in names)):
        treated = treated_spec(subject, one)
        if treated is not None:
            way = way_of(subject, one, treated)
            return Planned(suspect=suspect, experiment=one, treated=treated, way=way)
    tried = "; ".join(one.title for one in known)
    return Planned(
        suspect=suspect,
        reason=f"nothing in this run can be changed for it ({tried}); --treated takes a command",
    )


def _telling(planned: Planned) -> tuple[bool, float, str]:
    """Order by how much a verdict would tell: a cause that is as likely as not tells most."""
    share = planned.suspect.probability
    return planned.experiment is None, -share * (1 - share) - share / 2, planned.suspect.cause
