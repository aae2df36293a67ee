"""What the arms of an experiment mean for the cause: confirmed, refuted, or neither.

The baseline has to fail as the log did. The treated run lacks one thing. The control is changed in
a way that must not help: if it fits too, the failure comes and goes by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.growth import cured, growth_of, judged_by_growth, shows_growth
from oomdoctor.model.trial import (
    CONFIRMED,
    FIT,
    HOST_OOM,
    INCONCLUSIVE,
    OOM,
    REFUTED,
    Confirmation,
)
from oomdoctor.record import dataclass
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.trial import OomIdentity, TrialResult

LEAST_SHARE = 0.10
"""Of the bytes that the baseline needed: a change that saves less helps a run over the edge, as any
other change of that size would, and does not show that its target was the reason."""

FAR_OFF = 3.0
"""Of its prediction: a change that saves so much less helps by something else than its cause."""

FACTOR = 1.5
"""By how much a saving may differ from its prediction before the prediction is said to be off."""

_FAILURES = (OOM, HOST_OOM)
WITHOUT_ALLOCATOR = ("cpu",)
EARLY = ("load", "train step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The runs of an experiment; `wanted` is how the diagnosed failure looked, where it is known.

    `whole` is the run as it is without the cap, where there is memory for it: a run that fails is
    cut short, and tells too little of what it needs. `predicted_bytes` is what the change should
    save.
    """

    baseline: tuple[TrialResult, ...] = ()
    whole: tuple[TrialResult, ...] = ()
    treated: tuple[TrialResult, ...] = ()
    control: tuple[TrialResult, ...] = ()
    wanted: OomIdentity | None = None
    predicted_bytes: int | None = None


def confirmation(cause: str, experiment: Experiment, arms: Arms) -> Confirmation:
    """Judge an experiment."""
    saved, at_least = saving(arms)
    growth = growth_of(arms.baseline, arms.treated)
    verdict, reason = _judged(experiment, arms, saved, at_least=at_least)
    return Confirmation(
        cause=cause,
        verdict=verdict,
        reason=reason,
        experiment=experiment.name,
        title=experiment.title,
        baseline=arms.baseline,
        treated=arms.treated,
        control=arms.control,
        whole=arms.whole,
        predicted_saving_bytes=arms.predicted_bytes,
        measured_saving_bytes=saved,
        at_least=at_least,
        growth_bytes=growth.before_bytes,
        treated_growth_bytes=growth.after_bytes,
        sites=_sites(arms),
    )


def _sites(arms: Arms) -> tuple[str, ...]:
    runs = (*arms.baseline, *arms.treated, *arms.control)
    return tuple(dict.fromkeys(site for one in runs for site in one.held_sites))


def inconclusive(cause: str, experiment: str, reason: str, *, title: str = "") -> Confirmation:
    """Return the verdict on a cause that could not be put to the test."""
    return Confirmation(
        cause=cause, verdict=INCONCLUSIVE, reason=reason, experiment=experiment, title=title
    )


def baseline_trouble(experiment: Experiment, arms: Arms) -> str | None:
    """Say why the baseline does not show the failure that is to be explained; None: it does."""
    if not arms.baseline:
        return "no baseline was run"
    if shows_growth(experiment, arms.baseline):
        return None
    for one in arms.baseline:
        if one.outcome == FIT:
            return "the run as it is does not fail here, so nothing can be proven by mending it"
        if one.outcome not in _FAILURES:
            return f"the run as it is ends by {one.outcome}: {one.reason}"
        if arms.wanted is not None and not same_failure(one.identity, arms.wanted):
            return f"the run as it is fails otherwise than the log: {one.reason}"
    return None


def same_failure(one: OomIdentity | None, other: OomIdentity | None) -> bool:
    """Say whether two failures are of one kind: what ran out, and where both tell it, the place."""
    if one is None or other is None:
        return one is other
    if (one.backend == "host") != (other.backend == "host"):
        return False
    return one.site is None or other.site is None or one.site == other.site


def needed_bytes(result: TrialResult) -> int | None:
    """Return what a run needed as far as it came: its peak, or what it held and asked for."""
    peak = result.allocated_bytes
    if peak is None:
        return result.host_bytes if result.outcome == HOST_OOM else result.peak_bytes
    return peak + (result.requested_bytes or 0) if result.outcome in _FAILURES else peak


def saving(arms: Arms) -> tuple[int | None, bool]:
    """Return the bytes saved, and whether they are a lower bound because the baseline failed.

    What is compared is the phase in which the baseline failed: another one may be the peak of the
    run that came farther. A treated run that fails as well was cut short, and saves nothing yet.
    """
    if any(one.outcome in _FAILURES for one in arms.treated):
        return None, False
    phase = next((_place(one)[0] for one in arms.baseline if one.outcome in _FAILURES), "")
    whole = [one for one in arms.whole if one.outcome == FIT]
    cut = not whole and any(one.outcome in _FAILURES for one in arms.baseline)
    runs = [_needed_in(one, phase) for one in whole] or list(map(needed_bytes, arms.baseline))
    before = [value for value in runs if value is not None]
    after = [value for one in arms.treated if (value := _needed_in(one, phase)) is not None]
    if not before or not after:
        return None, False
    return max(before) - max(after), cut


def _needed_in(result: TrialResult, phase: str) -> int | None:
    """Return what a run that fits needed in a phase, or altogether where it does not tell."""
    named = [one.allocated_bytes for one in result.phases if one.name == phase]
    return max((one for one in named if one is not None), default=needed_bytes(result))


def _judged(
    experiment: Experiment, arms: Arms, saved: int | None, *, at_least: bool
) -> tuple[str, str]:
    trouble = baseline_trouble(experiment, arms) or _trouble_of_change(experiment, arms)
    if trouble is not None:
        return INCONCLUSIVE, trouble
    growth = growth_of(arms.baseline, arms.treated)
    failed = any(one.outcome in _FAILURES for one in arms.baseline)
    decided = judged_by_growth(experiment, growth, _worst(arms.treated), failed=failed)
    if any(one.outcome in _FAILURES for one in arms.treated):
        return decided or _still_fails(experiment, arms)
    if decided is not None:
        return decided
    if not failed:
        return cured(experiment, growth, arms.control)
    if any(one.outcome == FIT for one in arms.control):
        return INCONCLUSIVE, "a change that should not help fits as well: the failure is not stable"
    return _fits(experiment, arms, saved, at_least=at_least)


def _needs_less(before: TrialResult, after: TrialResult) -> int | None:
    """Return by how much less a treated run had needed where both failed; None: hardly less."""
    needed, then = needed_bytes(before), needed_bytes(after)
    if needed is None or then is None or needed - then < LEAST_SHARE * needed:
        return None
    return needed - then


def _trouble_of_change(experiment: Experiment, arms: Arms) -> str | None:
    """Say why the changed runs show nothing; None: they do."""
    odd = [one for one in (*arms.treated, *arms.control) if one.outcome not in (FIT, *_FAILURES)]
    if odd:
        return f"a changed run ended by {odd[0].outcome}: {odd[0].reason}"
    if not arms.treated:
        return "the changed run did not take place"
    if experiment.of_allocator and arms.baseline[0].backend in WITHOUT_ALLOCATOR:
        return "tensors were counted without the allocator of a card, which the cause is about"
    if _was_idle(experiment, arms) and _concerns(experiment, arms):
        return f"the change ({experiment.title}) never took effect in the run"
    return None


def _was_idle(experiment: Experiment, arms: Arms) -> bool:
    """Say whether the change never took effect."""
    return 0 in [one.interventions.get(experiment.hook or "") for one in arms.treated]


def _concerns(experiment: Experiment, arms: Arms) -> bool:
    """Say whether the failure is where the cause can show: its phases, a step after the first."""
    phase, steps = _place(arms.baseline[0])
    if experiment.phases and phase and phase not in experiment.phases:
        return False
    return not (experiment.grows and steps == 0 and phase in EARLY)


def _still_fails(experiment: Experiment, arms: Arms) -> tuple[str, str]:
    """Judge a treated run that fails: in the same place, or farther on."""
    before, after = arms.baseline[0], next(one for one in arms.treated if one.outcome in _FAILURES)
    same = same_failure(before.identity, after.identity)
    if same and _place(before) == _place(after) and not _concerns(experiment, arms):
        phase = _place(before)[0]
        early = "" if experiment.phases else ", before anything is kept"
        return REFUTED, f"it fails in its {phase}{early}: {experiment.title} does not matter there"
    less = _needs_less(before, after)
    if same and less is not None:
        helps = f"it needs {format_size(less)} less there: it helps, but not enough alone"
        return INCONCLUSIVE, f"with {experiment.title} it fails in the same place, but {helps}"
    if same and _place(before) == _place(after):
        return REFUTED, f"with {experiment.title} it fails in the same place"
    if not same and before.identity and after.identity:
        moved = f"{before.identity.site} to {after.identity.site}"
        return INCONCLUSIVE, f"with {experiment.title} the failure moves from {moved}"
    return INCONCLUSIVE, f"with {experiment.title} it fails later: it helps, but not enough alone"


def _fits(
    experiment: Experiment, arms: Arms, saved: int | None, *, at_least: bool
) -> tuple[str, str]:
    """Judge a treated run that fits while baseline and control fail."""
    needed = max((needed_bytes(one) or 0 for one in (*arms.whole, *arms.baseline)), default=0)
    little = saved is not None and needed and saved < LEAST_SHARE * needed
    if little and saved is not None and not experiment.lifts_cap:
        share = f"{max(saved, 0) / needed:.0%} of what is needed"
        small = f"that saves only {share}: at the edge any such change helps"
        return INCONCLUSIVE, f"it fits with {experiment.title}, but {small}"
    predicted = arms.predicted_bytes
    if saved is not None and predicted and not at_least and saved * FAR_OFF < predicted:
        far = f"{format_size(max(saved, 0))} where its cause should hold {format_size(predicted)}"
        return INCONCLUSIVE, f"it fits with {experiment.title}, but that saves only {far}"
    if not _concerns(experiment, arms) and not any(_effects(experiment, arms)):
        phase = _place(arms.baseline[0])[0]
        elsewhere = f"the run as it is fails in its {phase}, where the cause does not show"
        return INCONCLUSIVE, f"it fits with {experiment.title}, but {elsewhere}"
    reason = f"it fits with {experiment.title}, and fails without"
    if saved and predicted and _is_off(saved, predicted, at_least=at_least):
        reason += f"; it saves {format_size(saved)} where {format_size(predicted)} were predicted"
    return CONFIRMED, reason


def _is_off(saved: int, predicted: int, *, at_least: bool) -> bool:
    """Say whether a saving contradicts its prediction; a lower bound does so from above alone."""
    return saved > predicted * FACTOR or (not at_least and saved < predicted / FACTOR)


def _effects(experiment: Experiment, arms: Arms) -> list[int]:
    """Return how often an injected change took effect in each treated run."""
    return [one.interventions.get(experiment.hook or "", 0) for one in arms.treated]


def _worst(results: Sequence[TrialResult]) -> TrialResult:
    return next((one for one in results if one.outcome in _FAILURES), results[0])


def _place(result: TrialResult) -> tuple[str, int]:
    """Return the phase in which a run failed, and the steps that it had taken."""
    last = result.phases[-1].name if result.phases else ""
    return last, result.steps
