"""Several changes at once: what the search for the cheapest set of fixes runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.arms import treated_spec
from oomdoctor.experiments.catalogue import EXPERIMENTS
from oomdoctor.model.enums import Safety
from oomdoctor.record import replace
from oomdoctor.search.minimal import FREE, QUALITY, SPEED, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from oomdoctor.experiments.arms import Subject
    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import TrialSpec

_COSTS = {
    Safety.SAFE: FREE,
    Safety.CHANGES_SPEED: SPEED,
    Safety.CHANGES_MATH: QUALITY,
    Safety.NEEDS_CODE: QUALITY,
}


def candidates(subject: Subject) -> tuple[Experiment, ...]:
    """Return the changes that can be made to a run and that one can train with."""
    return tuple(
        one
        for one in EXPERIMENTS
        if one.is_remedy and not one.lifts_cap and treated_spec(subject, one) is not None
    )


def changes_of(
    experiments: Iterable[Experiment],
    subject: Subject,
    need: Callable[[Job], int] | None = None,
) -> tuple[Change, ...]:
    """Return changes with what they cost and (of a job, by `need`) should save."""
    return tuple(
        Change(
            name=one.name,
            saving_bytes=predicted_saving(one, subject, need),
            cost=_COSTS[one.safety],
            price=one.time_factor,
        )
        for one in experiments
    )


def predicted_saving(
    experiment: Experiment, subject: Subject, need: Callable[[Job], int] | None = None
) -> int | None:
    """Return what a change should save: by the peaks of the job, else as its fix says."""
    treated = treated_spec(subject, experiment)
    before = subject.spec.job
    if need is not None and before is not None and treated is not None and treated.job is not None:
        return max(0, need(before) - need(treated.job))
    fix = subject.fixes.get(experiment.fix or "")
    return None if fix is None or fix.saving is None else fix.saving.likely_bytes


def with_changes(subject: Subject, experiments: Sequence[Experiment]) -> TrialSpec:
    """Return the run with changes on top of each other; one that another made needless is left."""
    for one in experiments:
        treated = treated_spec(subject, one)
        if treated is not None:
            subject = replace(subject, spec=treated)
    return subject.spec
