"""Settings that fit a model on a card, best first: quality, then speed, then memory.

The formula looks through all of them; where torch is there, the simulation judges those that are
chosen, for each quality the fastest first, until one fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.estimating.formula import Formula
from oomdoctor.estimating.plan_space import RULES, candidates
from oomdoctor.estimating.verdicts import verdicts, word_for
from oomdoctor.memory.outside import outside
from oomdoctor.model.estimate import FITS, FORMULA, OOM, SIMULATE, FitPlan, PlanStep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from oomdoctor.estimating.choice import Engines
    from oomdoctor.estimating.describe import Source
    from oomdoctor.estimating.engine import Engine
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.estimating.plan_space import Candidate
    from oomdoctor.model.job import CardSpec

MOST_TRACES = 12


def plan(
    source: Source,
    card: CardSpec,
    engines: Engines,
    *,
    fixed: Mapping[str, str],
    formula: Engine | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> FitPlan:
    """Return the settings that fit on a card; what `fixed` names by flag is not varied."""
    say("looking through settings")
    found = candidates(source, card, fixed)
    quick = formula or Formula()
    sketched = [(one, quick.peak(one.job)) for one in found]
    needs = [peak.needed + outside(one.job).low for one, peak in sketched]
    steps = _Chooser(card, engines, say).chosen(sketched)
    whole = {one.job.batch * one.job.grad_accum for one in found}
    rows = "".join(f"every setting has {one} rows in a step" for one in sorted(whole)[:1])
    return FitPlan(
        card=card.name,
        capacity_bytes=card.total_bytes,
        steps=tuple(steps),
        tried=len(found),
        least_bytes=min(needs, default=None),
        assumptions=(rows, RULES) if rows else (),
        fallback=engines.fallback,
    )


class _Chooser:
    """Takes the fastest setting of each quality that fits, by the best engine there is."""

    def __init__(self, card: CardSpec, engines: Engines, say: Callable[[str], None]) -> None:
        self._card = card
        self._engines = engines
        self._say = say
        self._traces = 0

    def chosen(self, sketched: Sequence[tuple[Candidate, Peak]]) -> list[PlanStep]:
        ordered = sorted(
            sketched, key=lambda pair: (pair[0].quality, pair[0].time, pair[1].allocated)
        )
        steps: dict[int, PlanStep] = {}
        for one, peak in ordered:
            if one.quality in steps or self._word(one, peak) == OOM:
                continue
            made = self._step(one, self._judged(one, peak))
            if made.verdict.verdict == FITS:
                steps[one.quality] = made
        return list(steps.values())

    def _word(self, one: Candidate, peak: Peak) -> str:
        return word_for(peak, self._card.total_bytes, outside(one.job))

    def _judged(self, one: Candidate, sketch: Peak) -> Peak:
        """Simulate or run a setting where that is possible; else the sketch stands."""
        if self._engines.name == FORMULA or self._traces >= MOST_TRACES:
            return sketch
        self._traces += 1
        verb = "simulating" if self._engines.name == SIMULATE else "running"
        self._say(f"{verb} " + ", ".join(f"{name} {text}" for name, text in one.settings.items()))
        return self._engines.speak(self._card, lambda engine: engine.peak(one.job))

    def _step(self, one: Candidate, peak: Peak) -> PlanStep:
        judged = verdicts(peak, [self._card], outside(one.job), named=False)[0]
        return PlanStep(
            settings=one.settings,
            peak_allocated_bytes=peak.allocated,
            peak_reserved_bytes=peak.reserved,
            verdict=judged,
            quality=float(one.quality),
            time_factor=one.time,
            engine=peak.engine,
            notes=(one.note,),
        )
