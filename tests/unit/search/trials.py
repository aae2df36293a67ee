"""What tests of searches share: trials of made-up outcomes, and what a round has to keep to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import CRASH, FIT, OOM, Curve, OomIdentity, TrialResult, TrialSpec
from oomdoctor.search.axes import Axis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.lab.simulated import FormulaBackend
    from oomdoctor.model.trial import Value
    from oomdoctor.search.rounds import Ask

GIB = 1 << 30
IDENTITY = OomIdentity(backend="cuda", exception="OutOfMemoryError", site="model.py:forward")


BATCH = Axis(name="batch", low=1, high=512)
CAP = 24 * GIB
LINEAR = Curve(axis="batch", quantity="reserved", constant=4 * GIB, linear=0.53 * GIB)
EDGE = 37  # of LINEAR at CAP


def linear(values: Mapping[str, Value]) -> float:
    """Return the bytes of LINEAR at the values of a trial."""
    return LINEAR.at(float(values["batch"]))


def by(backend: FormulaBackend) -> Callable[[Ask], TrialResult]:
    """Return what runs an ask on a formula."""

    def run(ask: Ask) -> TrialResult:
        return backend.run(TrialSpec(values=ask.values, repeat=ask.repeat), lambda _text: None)

    return run


def result(
    ask: Ask,
    outcome: str,
    peak_bytes: int | None = None,
    identity: OomIdentity | None = IDENTITY,
    host_bytes: int | None = None,
) -> TrialResult:
    """Return a result for an ask, with an identity where it ran out of memory."""
    return TrialResult(
        key=str(dict(ask.values)),
        values=ask.values,
        backend="formula",
        outcome=outcome,
        reason="as the test has it" if outcome == CRASH else "",
        identity=identity if outcome not in (FIT, CRASH) else None,
        reserved_bytes=peak_bytes if outcome == FIT else None,
        host_bytes=host_bytes,
    )


def fits_up_to(largest: float, name: str = "batch") -> Callable[[Ask], TrialResult]:
    """Return trials that fit up to a value and tell no peak."""
    return lambda ask: result(ask, FIT if float(ask.values[name]) <= largest else OOM)
