"""Puts causes to the test, as a search: asks for the arms of an experiment and judges them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.arms import BASELINE, CONTROLLED, TREATED
from oomdoctor.experiments.judge import Arms, baseline_trouble, confirmation, needed_bytes
from oomdoctor.model.trial import FIT
from oomdoctor.record import replace
from oomdoctor.search.rounds import Ask, Stopped

if TYPE_CHECKING:
    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.trial import Confirmation, OomIdentity, TrialResult, Value
    from oomdoctor.search.rounds import Results, Search

NEAR = 0.02
"""Of the cap: a run that misses it by less is repeated, since it may fall on either side."""

REPEATS = 3


def confirm(
    cause: str,
    experiment: Experiment,
    *,
    cap_bytes: int | None = None,
    wanted: OomIdentity | None = None,
    predicted_bytes: int | None = None,
) -> Search[Confirmation]:
    """Ask for baseline, treatment and control of an experiment; return the verdict.

    The control is run only where the treatment fits, and all are repeated near the edge. A search
    that is stopped judges what it has.
    """
    arms = Arms(wanted=wanted, predicted_bytes=predicted_bytes)
    try:
        baseline = yield from _run(experiment, BASELINE)
        arms = replace(arms, baseline=baseline)
        if baseline_trouble(arms) is None:
            more = REPEATS if _is_near(baseline[0], cap_bytes) else 1
            arms = replace(arms, treated=(yield from _run(experiment, TREATED, more)))
            if all(one.outcome == FIT for one in arms.treated):
                arms = replace(arms, control=(yield from _run(experiment, CONTROLLED, more)))
    except Stopped as stop:
        return replace(confirmation(cause, experiment, arms), reason=f"stopped: {stop.reason}")
    return confirmation(cause, experiment, arms)


def _run(experiment: Experiment, arm: str, times: int = 1) -> Search[Results]:
    """Ask for an arm so many times; baselines of equal length are one trial of the journal."""
    values: dict[str, Value] = {"arm": arm, "experiment": experiment.name}
    results = yield tuple(Ask(values=values, repeat=number) for number in range(times))
    return results


def _is_near(result: TrialResult, cap_bytes: int | None) -> bool:
    needed = needed_bytes(result)
    if needed is None or cap_bytes is None:
        return False
    return abs(needed - cap_bytes) < NEAR * cap_bytes
