"""Whether a run keeps something from step to step: what it holds after each optimizer step."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from oomdoctor.model.trial import CONFIRMED, FIT, INCONCLUSIVE, REFUTED
from oomdoctor.record import dataclass
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.trial import TrialResult

LEAST_STEPS = 3
LEAST_SHARE = 0.05
"""Of what is held in the end: what grows by less over all steps is no leak that fills a card."""

CURED = 0.5
"""Of the growth as it was: a treated run that grows by less has lost a reason of it."""

UNCHANGED = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Bytes that are held more after each step than after the one before; None: not known."""

    before_bytes: int | None = None
    after_bytes: int | None = None

    @property
    def grows(self) -> bool:
        """Say whether the run as it is grows."""
        return bool(self.before_bytes)

    @property
    def is_cured(self) -> bool:
        """Say whether the treated run grows no more, or far less."""
        if self.before_bytes is None or self.after_bytes is None:
            return False
        return self.after_bytes < CURED * self.before_bytes

    @property
    def is_unchanged(self) -> bool:
        """Say whether the treated run grows as the run does that was not treated."""
        if not self.before_bytes or self.after_bytes is None:
            return False
        return self.after_bytes >= UNCHANGED * self.before_bytes


def growth_of(baseline: Sequence[TrialResult], treated: Sequence[TrialResult]) -> Growth:
    """Return the growth before and after a treatment."""
    return Growth(before_bytes=per_step(baseline), after_bytes=per_step(treated))


def per_step(results: Sequence[TrialResult]) -> int | None:
    """Return what is held more after each step, of the run that tells most steps; 0: no growth.

    The median leaves out the first step of an optimizer and a longer row now and then.
    """
    held = max((one.held_bytes for one in results), key=len, default=())
    if len(held) <= LEAST_STEPS:
        return None
    more = [after - before for before, after in pairwise(held)]
    each = int(median(more))
    return each if each > 0 and each * len(more) >= LEAST_SHARE * held[-1] else 0


def shows_growth(experiment: Experiment, baseline: Sequence[TrialResult]) -> bool:
    """Say whether a run that came to its end shows the failure all the same: it grows."""
    return (
        experiment.grows is True
        and all(one.outcome == FIT for one in baseline)
        and bool(per_step(baseline))
    )


def judged_by_growth(
    experiment: Experiment, growth: Growth, treated: TrialResult, *, failed: bool = True
) -> tuple[str, str] | None:
    """Judge what growth alone decides; None: it decides nothing.

    `failed` says that the run as it is failed within its steps.
    """
    before = None if growth.before_bytes is None else format_size(growth.before_bytes)
    if growth.is_unchanged and (treated.outcome != FIT or not failed):
        return REFUTED, f"with {experiment.title} it grows as before, by {before} a step"
    if treated.outcome != FIT or experiment.grows is None:
        return None
    if growth.grows and not growth.is_cured and growth.after_bytes is not None:
        after = format_size(growth.after_bytes)
        return INCONCLUSIVE, f"it fits for these steps, but still grows by {after} a step"
    if growth.grows and not experiment.grows:
        kept = f"what is kept from step to step ({before} a step) filled the memory"
        return INCONCLUSIVE, f"it fits, but {kept}, and the cause is none that keeps anything"
    if experiment.grows and growth.before_bytes == 0:
        return INCONCLUSIVE, "it fits, but the run as it is does not grow from step to step"
    return None


def cured(
    experiment: Experiment, growth: Growth, control: Sequence[TrialResult]
) -> tuple[str, str]:
    """Judge a run that did not fail within its steps, and that grows no more when treated."""
    other = growth_of((), control).after_bytes
    if not growth.is_cured or growth.before_bytes is None:
        return INCONCLUSIVE, "how much the treated run keeps after each step is not known"
    if other is None or other < UNCHANGED * growth.before_bytes:
        return INCONCLUSIVE, "a change that should not help changes the growth: it is not stable"
    before = format_size(growth.before_bytes)
    return CONFIRMED, f"it grows by {before} a step, and with {experiment.title} it does not"
