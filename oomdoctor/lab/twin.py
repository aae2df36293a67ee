"""A scaled twin of a job: fewer layers under a cap that is smaller by as much.

    twin = twin_of(job, cap_bytes)      # None where the job cannot be made smaller
    twin.job, twin.cap_bytes, twin.ratio

What the twin needs is to its cap as what the job needs is to its own, as far as the formula of both
is right (docs/accuracy.md); a twin is a cheap first look, and no proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.few_layers import layers_of, with_few_layers
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import PhasePeak, TrialResult

PART = 4
"""The twin keeps every so-many-th layer: fewer would let what is no layer outweigh them."""


class Twin(NamedTuple):
    """A smaller job with its cap; `ratio` is what it needs of what the job needs, by formula."""

    job: Job
    cap_bytes: int
    ratio: float
    sentence: str


def twin_of(job: Job, cap_bytes: int) -> Twin | None:
    """Return the twin of a job; None where it has no layers to leave out, or no formula."""
    count = layers_of(job) or 0
    small = with_few_layers(job, least=count // PART)
    if small is None:
        return None
    try:
        ratio = _peak(small) / _peak(job)
    except (ValueError, ZeroDivisionError):
        return None
    kept = layers_of(small) or 0
    sentence = (
        f"inferred from a twin of {kept} of {count} layers that ran under a cap smaller by as much "
        f"as its peak by formula ({ratio:.3f} of it); the figures are those of the twin divided by "
        "that"
    )
    return Twin(small, int(cap_bytes * ratio), ratio, sentence)


def scaled(result: TrialResult, twin: Twin) -> TrialResult:
    """Return what a trial of the twin says of the job: figures of the device made larger again."""
    return replace(
        result,
        phases=tuple(_scaled_phase(one, twin.ratio) for one in result.phases),
        allocated_bytes=_divided(result.allocated_bytes, twin.ratio),
        reserved_bytes=_divided(result.reserved_bytes, twin.ratio),
        device_bytes=None,
        step_seconds=None,
        tokens_per_second=None,
        assumptions=(twin.sentence, *result.assumptions),
    )


def _scaled_phase(phase: PhasePeak, ratio: float) -> PhasePeak:
    return replace(
        phase,
        allocated_bytes=_divided(phase.allocated_bytes, ratio),
        reserved_bytes=_divided(phase.reserved_bytes, ratio),
        device_bytes=None,
    )


def _divided(figure: int | None, ratio: float) -> int | None:
    return None if figure is None else int(figure / ratio)


def _peak(job: Job) -> int:
    return max(one.allocated_bytes for one in peak_by_formula(job).phases)
