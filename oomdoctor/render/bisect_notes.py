"""Notes below a threshold: how the run began, what trials leave open, what was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import FIT
from oomdoctor.render.words import percent
from oomdoctor.search.axes import HOST

if TYPE_CHECKING:
    from oomdoctor.model.bisect import Bisected
    from oomdoctor.model.trial import TrialResult


def notes_of(made: Bisected) -> tuple[str, ...]:
    """Return the notes of a run."""
    found = list(made.notes)
    start = made.start
    if start.engine is not None:
        found.append(
            f"Began with the estimate of the {start.engine} engine, which may be off by"
            f" {percent(start.error)}"
        )
    elif start.why_not:
        found.append(f"Began without an estimate: {start.why_not}")
    if made.folder is not None:
        found.append(f"Journal, output of the trials and run.sh are in {made.folder}")
    if not on_host(made):
        found += [_remark(reason, numbers) for reason, numbers in _remarks(made.trials).items()]
    found += _unmoved(made)
    assumed = {one: None for trial in made.trials for one in trial.assumptions}
    found += [f"Assumed: {one}" for one in assumed]
    return tuple(f"{one.rstrip('.')}." for one in found)


def _unmoved(made: Bisected) -> list[str]:
    """Say where what was measured is the same at every value: perhaps nothing reads the axis."""
    if made.answer is None or made.answer.bracket.ooms_at is not None:
        return []
    name = made.answer.bracket.axis
    peaks = {one.values[name]: one.peak_bytes for one in made.trials if one.peak_bytes}
    if len(peaks) < 2 or len(set(peaks.values())) > 1:
        return []
    return [f"The peak is the same at every {name} that was tried: perhaps nothing reads it"]


def _remarks(trials: tuple[TrialResult, ...]) -> dict[str, list[int]]:
    """Return what trials that fit leave open, and what they share, with their numbers."""
    found: dict[str, list[int]] = {}
    for number, one in enumerate(trials, 1):
        if one.outcome == FIT and one.reason:
            found.setdefault(one.reason, []).append(number)
    return found


def _remark(reason: str, numbers: list[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"Of trial{'s' * (len(numbers) > 1)} {listed}: {reason}"


def on_host(made: Bisected) -> bool:
    """Say whether the memory of the host decides: on the axis whose edge is looked for."""
    return made.axes[-1].memory == HOST
