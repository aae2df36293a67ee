"""The estimate that a search begins with, where the job is known."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from oomdoctor.cli.bisect_axes import name_in_job
from oomdoctor.errors import OomdoctorError
from oomdoctor.estimating.shapes import shape_of
from oomdoctor.estimating.start import start_curve
from oomdoctor.lab.job_values import job_at
from oomdoctor.model.bisect import StartCurve
from oomdoctor.search.axes import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.estimating.choice import Engines
    from oomdoctor.estimating.engine import Engine
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.model.job import CardSpec, Job
    from oomdoctor.model.trial import Curve, Value
    from oomdoctor.search.axes import Axis

OF_THE_HOST_ERROR = 0.25
"""By how much the estimate for a card may be off where tensors of the host are counted."""
_BY_SHAPE = frozenset({"batch", "seq"})


class Start:
    """Estimates a job along an axis; curves of other rows of a frontier come from the same one."""

    def __init__(self, job: Job, chosen: Engines, card: CardSpec | None, backend: str) -> None:
        """Estimate nothing yet."""
        self._job = job
        self._chosen = chosen
        self._card = card
        self._backend = backend

    def on(
        self, axis: Axis, limit_bytes: float | None, fixed: Mapping[str, Value] | None = None
    ) -> StartCurve:
        """Return the curve on an axis, with other axes at fixed values; or why there is none."""
        if axis.memory == HOST:
            return StartCurve(why_not=f"{axis.name} takes memory of the host")
        try:
            return self._chosen.speak(
                self._card, partial(self._spoken, axis, limit_bytes, fixed or {})
            )
        except OomdoctorError as error:
            return StartCurve(why_not=error.message.partition("\n")[0])

    def by_row(
        self, inner: Axis, outer: Axis, limit_bytes: float | None
    ) -> Callable[[float], Curve | None]:
        """Return what gives the curve of a row of a frontier."""

        def curve(value: float) -> Curve | None:
            fixed = {outer.name: int(value) if outer.integer else value}
            return self.on(inner, limit_bytes, fixed).curve

        return curve

    def _spoken(
        self,
        axis: Axis,
        limit_bytes: float | None,
        fixed: Mapping[str, Value],
        engine: Engine,
    ) -> StartCurve:
        errors: list[float] = []

        def peak(value: float) -> float:
            found = peak_at(engine, self._job, {**fixed, axis.name: value})
            errors.append(max(found.up, found.down))
            return found.needed

        curve = start_curve(axis, peak, limit_bytes, quantity="reserved")
        error = OF_THE_HOST_ERROR if self._backend == "cpu" else max(errors)
        return StartCurve(curve=curve, engine=engine.name, error=error)


def peak_at(engine: Engine, job: Job, values: Mapping[str, Value]) -> Peak:
    """Return the peak of a job at the values of axes."""
    named = {name_in_job(name): value for name, value in values.items()}
    changed = job_at(job, named)
    if set(named) <= _BY_SHAPE:
        return engine.at(job, shape_of(changed))
    return engine.peak(changed)
