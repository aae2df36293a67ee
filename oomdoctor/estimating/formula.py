"""The formula engine: peaks from closed formulas, without torch, for any batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.estimating.peak import Peak
from oomdoctor.estimating.shapes import with_shape
from oomdoctor.memory import bands
from oomdoctor.model.estimate import FORMULA

if TYPE_CHECKING:
    from oomdoctor.estimating.shapes import Shape
    from oomdoctor.model.job import Job

ORIGIN = "closed formulas with measured coefficients"


class Formula:
    """Speaks for any job; settings of the allocator change nothing that it knows."""

    name = FORMULA

    def __init__(self, *, settings: str = "") -> None:
        """Keep the settings for who asks."""
        self.settings = settings

    def peak(self, job: Job) -> Peak:
        """Return the peak of a job."""
        from oomdoctor.memory.formula import peak_by_formula

        found = peak_by_formula(job)
        highest = max(found.phases, key=lambda one: one.allocated_bytes)
        return Peak(
            engine=FORMULA,
            allocated=highest.allocated_bytes,
            reserved=None,
            phase=highest.name,
            up=bands.FORMULA.up,
            down=bands.FORMULA.down,
            phases=tuple(found.phases),
            parts=tuple(found.parts),
            categories=tuple(found.categories),
            owners=tuple(found.owners),
            assumptions=tuple(found.assumptions),
            origin=ORIGIN,
            settings=self.settings,
        )

    def at(self, job: Job, shape: Shape) -> Peak:
        """Return the peak of another batch of a job."""
        return self.peak(with_shape(job, shape))

    def under(self, settings: str) -> Formula:
        """Return the same formulas."""
        return Formula(settings=settings)
