"""Where a search begins: the curve of an estimate near the value at which memory runs out.

The peak of a whole run is the highest of its phases, so that one curve seldom holds from the lowest
value to the highest. It is drawn through the points next to the edge, which are looked for here.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from oomdoctor.model.trial import Curve
from oomdoctor.search.axes import QUADRATIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.search.axes import Axis

    PeakAt = Callable[[float], float]

MOST_LOOKS = 5
NEAR = 0.01
_BEGIN = 32  # the second look is at this part of the axis


def start_curve(axis: Axis, peak: PeakAt, limit_bytes: float | None, *, quantity: str) -> Curve:
    """Return the curve of `peak` on an axis, where it meets the limit if that is known."""
    last = axis.count - 1
    looks: dict[int, float] = {}
    for position in (
        0,
        min(last, max(1, last // _BEGIN)),
        *((last // 2, last) * (not limit_bytes)),
    ):
        looks.setdefault(position, peak(axis.value(position)))
    while limit_bytes and len(looks) < MOST_LOOKS and last > 0:
        position = _edge(_curve(axis, looks, limit_bytes, quantity), axis, limit_bytes)
        if position in looks:
            break
        looks[position] = peak(axis.value(position))
        if abs(looks[position] - limit_bytes) <= NEAR * limit_bytes:
            break
    return _curve(axis, looks, limit_bytes, quantity)


def _edge(curve: Curve, axis: Axis, limit_bytes: float) -> int:
    """Return the highest position that fits by a curve, 0 where none does."""
    low, high = 0, axis.count - 1
    while low < high:
        middle = (low + high + 1) // 2
        fits = curve.at(axis.value(middle)) <= limit_bytes
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _curve(
    axis: Axis, looks: Mapping[int, float], limit_bytes: float | None, quantity: str
) -> Curve:
    """Draw a curve through the looks that are nearest to the limit, on both sides of it."""
    limit = limit_bytes or max(looks.values())
    below = sorted((one for one in looks if looks[one] <= limit), key=lambda one: -looks[one])
    above = sorted((one for one in looks if looks[one] > limit), key=lambda one: looks[one])
    near = [one for pair in zip_longest(below, above) for one in pair if one is not None]
    rows = [(axis.load(axis.value(one)), looks[one]) for one in near]
    square = _square(rows[:3]) if axis.growth == QUADRATIC else None
    constant, linear, quadratic = square or (*_line(rows[:2]), 0.0)
    return Curve(
        axis=axis.name,
        quantity=quantity,
        constant=constant,
        linear=linear if axis.rising else 0.0,
        quadratic=quadratic if axis.rising else 0.0,
        inverse=0.0 if axis.rising else linear * axis.at(0),
    )


def _line(rows: list[tuple[float, float]]) -> tuple[float, float]:
    """Return constant and slope; what seems to fall is taken as even."""
    if len(rows) == 1 or rows[0][0] == rows[1][0]:
        return max(one[1] for one in rows), 0.0
    (x0, y0), (x1, y1) = rows
    slope = max((y1 - y0) / (x1 - x0), 0.0)
    return y0 - slope * x0, slope


def _square(rows: list[tuple[float, float]]) -> tuple[float, float, float] | None:
    """Return the parabola through three points; None where it would bend the wrong way."""
    if len({x for x, _ in rows}) < 3:
        return None
    (x0, y0), (x1, y1), (x2, y2) = sorted(rows)
    first, second = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    quadratic = (second - first) / (x2 - x0)
    linear = first - quadratic * (x0 + x1)
    if quadratic < 0 or linear < 0:
        return None
    return y0 - linear * x0 - quadratic * x0 * x0, linear, quadratic
