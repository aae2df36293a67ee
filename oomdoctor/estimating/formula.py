"""The formula engine: peaks from closed formulas, without torch, for any batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.estimating.peak import Peak
from oomdoctor.estimating.shapes import with_shape
from oomdoctor.memory import bands
from oomdoctor.memory.six_parts import six_parts
from oomdoctor.model.estimate import FORMULA
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.estimating.shapes import Shape
    from oomdoctor.model.estimate import PartBytes
    from oomdoctor.model.job import CardSpec, Job

ORIGIN = "closed formulas with measured coefficients"
HINT = (
    "give the config.json of a model of transformers (--model FOLDER/config.json), or --engine"
    " simulate where torch is installed; pipelines of diffusers are known as servers (--task"
    " serving --engine-name diffusers)"
)


class Formula:
    """Speaks for any job; settings of the allocator change nothing that it knows."""

    name = FORMULA

    def __init__(self, *, settings: str = "") -> None:
        """Keep the settings for who asks."""
        self.settings = settings

    def peak(self, job: Job) -> Peak:
        """Return the peak of a job; InputError for a model that no formula covers."""
        from oomdoctor.memory.formula import peak_by_formula

        try:
            found = peak_by_formula(job)
        except (ValueError, ZeroDivisionError) as error:
            why = "its config names no shape" if isinstance(error, ZeroDivisionError) else error
            raise InputError(f"no formula covers {job.model.name}: {why}", hint=HINT) from error
        categories = _adding_up(found.categories, found.peak_bytes)
        return Peak(
            engine=FORMULA,
            allocated=found.peak_bytes,
            reserved=None,
            phase=found.peak_phase,
            band=bands.FORMULA,
            phases=found.phases,
            parts=six_parts({one.name: one.bytes for one in categories}),
            categories=categories,
            owners=found.owners,
            assumptions=found.assumptions,
            origin=ORIGIN,
            settings=self.settings,
            host_bytes=found.host_bytes,
        )

    def at(self, job: Job, shape: Shape) -> Peak:
        """Return the peak of another batch of a job."""
        return self.peak(with_shape(job, shape))

    def under(self, settings: str) -> Formula:
        """Return the same formulas."""
        return Formula(settings=settings)

    def on(self, card: CardSpec) -> Formula:
        """Return the same formulas: they know no kernels."""
        del card
        return self

    def end_on(self, job: Job, card: CardSpec) -> None:
        """Run nothing."""


def _adding_up(parts: Sequence[PartBytes], whole: int) -> tuple[PartBytes, ...]:
    """Return the parts with what rounding left over given to the largest."""
    if not parts:
        return ()
    rest = whole - sum(one.bytes for one in parts)
    largest = max(range(len(parts)), key=lambda at: parts[at].bytes)
    return tuple(
        replace(one, bytes=one.bytes + rest) if at == largest else one
        for at, one in enumerate(parts)
    )
