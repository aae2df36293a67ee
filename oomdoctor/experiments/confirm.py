"""Puts causes to the test, as a search: asks for the arms of an experiment and judges them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.arms import BASELINE, CONTROLLED, TREATED, WHOLE
from oomdoctor.experiments.growth import growth_of
from oomdoctor.experiments.judge import Arms, baseline_trouble, confirmation
from oomdoctor.model.trial import FIT
from oomdoctor.record import replace
from oomdoctor.search.rounds import Ask, Stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.trial import Confirmation, OomIdentity, TrialResult, Value
    from oomdoctor.search.rounds import Results, Search

STOPPED = "stopped: "
"""How the reason of a verdict begins whose trials were ended early."""
NEAR = 0.02
"""Of the cap: a run that fits with less room is repeated, since it may fall on either side."""

REPEATS = 3


def confirm(
    cause: str,
    experiment: Experiment,
    *,
    cap_bytes: int | None = None,
    measures_whole: bool = False,
    wanted: OomIdentity | None = None,
    predicted_bytes: int | None = None,
) -> Search[Confirmation]:
    """Ask for baseline, treatment and control of an experiment; return the verdict.

    The control is run only where the treatment fits, and both are repeated near the edge.
    `measures_whole` says that there is memory for the run without its cap, so that the saving can
    be measured. A search that is stopped judges what it has.
    """
    arms = Arms(wanted=wanted, predicted_bytes=predicted_bytes)
    try:
        arms = replace(arms, baseline=(yield from _run(experiment, BASELINE)))
        if baseline_trouble(experiment, arms) is None:
            arms = replace(arms, treated=(yield from _run(experiment, TREATED)))
            if arms.treated[0].outcome == FIT and not _grows_on(arms):
                arms = yield from _compared(experiment, arms, cap_bytes, measures_whole)
    except Stopped as stop:
        return replace(confirmation(cause, experiment, arms), reason=f"{STOPPED}{stop.reason}")
    return confirmation(cause, experiment, arms)


def _compared(
    experiment: Experiment,
    arms: Arms,
    cap_bytes: int | None,
    measures_whole: bool,
) -> Search[Arms]:
    """Ask for the control of a treatment that fits, and for what tells how much it saves."""
    more = 1
    if _is_near(arms.treated[0], cap_bytes):
        more = REPEATS
        again = yield from _run(experiment, TREATED, range(1, REPEATS))
        arms = replace(arms, treated=(*arms.treated, *again))
    arms = replace(arms, control=(yield from _run(experiment, CONTROLLED, range(more))))
    if measures_whole and not experiment.lifts_cap and arms.baseline[0].outcome != FIT:
        arms = replace(arms, whole=(yield from _run(experiment, WHOLE)))
    return arms


def _run(experiment: Experiment, arm: str, numbers: Sequence[int] = (0,)) -> Search[Results]:
    """Ask for an arm, once for each number; baselines of equal length are one trial."""
    values: dict[str, Value] = {"arm": arm, "experiment": experiment.name}
    results = yield tuple(Ask(values=values, repeat=number) for number in numbers)
    return results


def _grows_on(arms: Arms) -> bool:
    """Say whether a run that did not fail grows as before when treated: no control is needed."""
    return arms.baseline[0].outcome == FIT and growth_of(arms.baseline, arms.treated).is_unchanged


def _is_near(result: TrialResult, cap_bytes: int | None) -> bool:
    peak = result.peak_bytes
    return peak is not None and cap_bytes is not None and cap_bytes - peak < NEAR * cap_bytes
