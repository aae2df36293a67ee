"""By how much each engine's peak may be off, from comparisons with measured runs.

`up` is how far the need may lie above the estimate where "fits" is still said, `down` how far below
where "oom" is. They are wider than what was measured where versions of the libraries agree, since a
job's own code and versions seldom do to the last tensor.
"""

from __future__ import annotations

from oomdoctor.record import NamedTuple


class Band(NamedTuple):
    """Shares of the peak."""

    up: float
    down: float


SIMULATION = Band(0.03, 0.03)
PLAIN_SIMULATION = Band(0.06, 0.06)
"""Traced on fake CPU tensors, where the one for CUDA could not be set up."""
FORMULA = Band(0.08, 0.08)
