"""The answer of a search on one axis: bracket, safe value, and the curve through its points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import Bracket, Curve, SearchAnswer
from oomdoctor.record import replace
from oomdoctor.search.axes import HOST
from oomdoctor.search.forecast import fit_of

if TYPE_CHECKING:
    from oomdoctor.search.axes import Axis
    from oomdoctor.search.tried import Tried

RESERVED = "reserved"
ALLOCATED = "allocated"
OF_THE_HOST = "host"


def answer(
    tried: Tried,
    cap_bytes: float | None,
    estimate: Curve | None,
    headroom: float,
    times: int,
    stopped: str | None,
) -> SearchAnswer:
    """Return what a search knows, whether or not it came to its end."""
    bracket = _bracket(tried, times)
    curve = curve_of(tried, estimate)
    return SearchAnswer(
        bracket=bracket,
        safe_value=_safe(tried, cap_bytes, curve, headroom),
        headroom=headroom,
        curve=curve,
        trials=tuple(tried.trials),
        stopped=None if bracket.proven else stopped,
        slipped=tuple(tried.slipped),
    )


def curve_of(tried: Tried, estimate: Curve | None = None) -> Curve | None:
    """Return the curve fitted to what was measured; None with a single point and no estimate.

    With a single point it is the estimate, moved through it.
    """
    axis = tried.axis
    measured = tried.points()
    points = tuple((float(axis.value(one)), round(peak)) for one, peak in measured)
    if len(points) < 2:
        if not points or estimate is None:
            return None
        moved = points[0][1] - estimate.at(points[0][0])
        constant = estimate.constant + moved
        return replace(estimate, constant=constant, points=points, estimated=True)
    grown = fit_of(axis, measured)
    if grown is None:
        return None
    constant, linear, *square = grown.fit.coefficients
    curve = Curve(
        axis=axis.name,
        quantity=_quantity(tried),
        constant=constant,
        linear=linear if axis.rising else 0.0,
        quadratic=square[0] if square else 0.0,
        inverse=0.0 if axis.rising else linear * axis.at(0),
        points=points,
        floor=grown.floor,
    )
    residual = max(abs(curve.at(value) - peak) for value, peak in points)
    return replace(curve, residual_bytes=round(residual))


def _quantity(tried: Tried) -> str:
    if tried.axis.memory == HOST:
        return OF_THE_HOST
    fits = [one for results in tried.fits.values() for one in results]
    return RESERVED if all(one.reserved_bytes is not None for one in fits) else ALLOCATED


def _bracket(tried: Tried, times: int) -> Bracket:
    axis, low, high = tried.axis, tried.low, tried.high
    closed = high - low == 1
    twice = low < 0 or tried.times(low) >= times
    failed = tried.failed.get(high)
    inferred = tuple(
        name
        for name, implied in (
            ("fits_at", low >= 0 and low not in tried.fits),
            ("ooms_at", high < axis.count and failed is None),
        )
        if implied
    )
    return Bracket(
        axis=axis.name,
        step=axis.step,
        fits_at=float(axis.value(low)) if low >= 0 else None,
        ooms_at=float(axis.value(high)) if high < axis.count else None,
        fits=tried.times(low) if low >= 0 else 0,
        proven=closed and twice and tried.same_failure,
        identity=None if failed is None else failed.identity,
        inferred=inferred,
    )


def _safe(
    tried: Tried, cap_bytes: float | None, curve: Curve | None, headroom: float
) -> float | None:
    """Return the largest value that leaves head-room of what there is; None where none does."""
    axis, low = tried.axis, tried.low
    if low < 0:
        return None
    if curve is None:
        return _below(axis, low, headroom)
    top = tried.points()[-1]
    moved = top[1] - curve.at(axis.at(top[0]))
    room = _room(tried, cap_bytes, curve, moved) * (1 - headroom)
    first, last = -1, low
    while first < last:
        position = (first + last + 1) // 2
        inside = curve.at(axis.at(position)) + moved <= room
        first, last = (position, last) if inside else (first, position - 1)
    return None if first < 0 else float(axis.value(first))


def _room(tried: Tried, cap_bytes: float | None, curve: Curve, moved: float) -> float:
    """Return what there is in the figures of the trials: between the lower end and the upper.

    A cap that speaks of more than the upper end needs is of another kind (a context, other
    processes), and one below what the lower end used is wrong.
    """
    axis, low, high = tried.axis, tried.low, tried.high
    at_low = curve.at(axis.at(low)) + moved
    cap = tried.cap(cap_bytes)
    if cap is None:
        return at_low
    at_high = curve.at(axis.at(high)) + moved if high < axis.count else cap.bytes
    return max(min(cap.bytes, at_high), at_low)


def _below(axis: Axis, low: int, headroom: float) -> float | None:
    """Return the value whose load is the head-room below that of the largest that fits."""
    limit = axis.load(axis.at(low)) * (1 - headroom)
    for position in range(low, -1, -1):
        if axis.load(axis.at(position)) <= limit:
            return float(axis.value(position))
    return None
