"""Where on an axis the peak will meet what there is, and how far off that may be.

The peak is an estimate's curve, moved through what was measured, or a curve fitted to measured
points alone; either way it goes through the largest setting that fits, since that one is nearest to
the edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.search.axes import QUADRATIC
from oomdoctor.search.fit import Fitted, fitted, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.model.trial import Curve
    from oomdoctor.search.axes import Axis

    Point = tuple[int, float]
    Bytes = Callable[[float], float]

NOISE_SHARE = 1 / 4000
"""Of the peak: what two runs of the same setting differ by, where nothing is known of it."""
SURPRISE_SHARE = 0.005
"""Of the cap: how far off what was said of it may be."""
JUMP_SHARE = 0.1
"""Of what is not yet explored below the cap: how much of it a jump of the peak may take."""
FLAT_SHARE = 1 / 500
"""Of the highest peak: peaks that differ by less may be the same."""
NEAR_SHARE = 0.02
"""Of what the peak grew by: a fit that is nearer to all points needs no floor."""
_LEVER = 20  # two points tell a slope once they differ by so many times the noise
_SCALES = (0.4, 2.5)  # an estimate whose slope is further off than this is of no use


class Cap(NamedTuple):
    """What there is, in the figures of the trials, and how far off that may be."""

    bytes: float
    error: float = 0.0


class Forecast(NamedTuple):
    """The peak by position, the position at which it meets the cap, and that one's error.

    `surprise` is the error, in positions too, where something is not as it was thought to be.
    """

    at: Bytes
    edge: float
    error: float
    surprise: float


def forecast(
    axis: Axis,
    points: Sequence[Point],
    cap: Cap,
    estimate: Curve | None = None,
    error: float = 0.05,
) -> Forecast | None:
    """Say where the peak meets the cap; None as long as there is too little to tell.

    `points` are positions that fit with their peaks, the lowest first. `error` is the relative
    error that an estimate may have, before a trial has been seen.
    """
    made = None
    if estimate is not None:
        made = _by_estimate(axis, points, cap, estimate, error)
    if made is None and len(points) > 1:
        made = _by_points(axis, points, cap)
    return made


def rows_of(axis: Axis, positions: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the columns of a fit: 1, the load, and its square where the axis has that."""
    loads = [axis.load(axis.at(one)) for one in positions]
    if axis.growth == QUADRATIC:
        return [(1.0, one, one * one) for one in loads]
    return [(1.0, one) for one in loads]


class Grown(NamedTuple):
    """A fit to the points at which the peak grows, the first of them, and what it is at least."""

    fit: Fitted
    points: Sequence[Point]
    floor: float = 0.0


def fit_of(axis: Axis, points: Sequence[Point]) -> Grown | None:
    """Fit the peaks of an axis, points near the edge before those far below it.

    The peak of a run is the highest of its phases, and one of them may not grow with the axis. So
    where one curve does not go through all points, and the lowest are alike, they are a floor.
    """
    fit = _fitted(axis, points)
    if fit is None:
        return None
    lowest, highest = points[0][1], points[-1][1]
    flat = sum(one - lowest <= highest * FLAT_SHARE for _, one in points)
    growing = points[flat:]
    if flat < 2 or not growing or fit.residual <= NEAR_SHARE * (highest - lowest):
        return Grown(fit, points)
    floor = max(one for _, one in points[:flat])
    used = growing if len(growing) > 1 else points[flat - 1 :]
    better = _fitted(axis, used)
    return Grown(fit, points) if better is None else Grown(better, used, floor)


def _fitted(axis: Axis, points: Sequence[Point]) -> Fitted | None:
    rows = rows_of(axis, [one for one, _ in points])
    largest = max((row[1] for row in rows), default=0.0) or 1.0
    weights = [max(row[1] / largest, 0.05) for row in rows]
    return fitted(rows, [value for _, value in points], weights)


def _by_estimate(
    axis: Axis, points: Sequence[Point], cap: Cap, estimate: Curve, error: float
) -> Forecast | None:
    """Move an estimate's curve through the measured points; None where they speak against it."""

    def said(position: float) -> float:
        return estimate.at(axis.at(position))

    if not points:
        return _meeting(axis, said, cap, error * cap.bytes, cap.bytes / 2)
    top, peak = points[-1]
    noise = max(cap.bytes, peak) * NOISE_SHARE
    scale, trust = 1.0, 2 * error
    lower = next(
        (p for p in reversed(points[:-1]) if said(top) - said(p[0]) > _LEVER * noise), None
    )
    if lower is not None:
        apart = said(top) - said(lower[0])
        scale = (peak - lower[1]) / apart
        trust = noise / apart + error / 10
        if not _SCALES[0] <= scale <= _SCALES[1]:
            return None

    def moved(position: float) -> float:
        return peak + scale * (said(position) - said(top))

    return _meeting(axis, moved, cap, abs(cap.bytes - peak) * trust + noise, peak)


def _by_points(axis: Axis, points: Sequence[Point], cap: Cap) -> Forecast | None:
    """Fit a curve to what was measured, and move it through the largest that fits."""
    if axis.growth == QUADRATIC and len(points) == 2:
        return _between(axis, points, cap)
    grown = fit_of(axis, points)
    if grown is None:
        return None
    fit = grown.fit
    top, peak = points[-1]
    columns = [k for k, one in enumerate(fit.coefficients) if one > 0]
    below = fit.at(rows_of(axis, [top])[0])

    def moved(position: float) -> float:
        return peak - below + fit.at(rows_of(axis, [position])[0])

    noise = max(cap.bytes * NOISE_SHARE, fit.residual / 2)
    found = _meeting(axis, moved, cap, noise, peak)
    if grown.floor and grown.points[0][1] <= grown.floor:
        # it began to grow somewhere between the last two points, and is steeper than their line
        beyond = max(found.edge - top, 0.0)
        return found._replace(edge=top + beyond * 0.6, error=found.error + beyond * 0.4)
    rows = [tuple(row[k] for k in columns) for row in rows_of(axis, [n for n, _ in grown.points])]
    there = rows_of(axis, [max(found.edge, 0)])[0]
    factor = spread(rows, tuple(there[k] for k in columns))
    return found._replace(error=found.error * (1 + (factor or 0.0)))


def _between(axis: Axis, points: Sequence[Point], cap: Cap) -> Forecast:
    """Say how far two points tell of a curve that may be straight, or all square."""
    (low, below), (top, peak) = points
    (_, x, xx), (_, y, yy) = rows_of(axis, [low, top])

    def straight(position: float) -> float:
        return peak + (peak - below) / (y - x) * (rows_of(axis, [position])[0][1] - y)

    def square(position: float) -> float:
        return peak + (peak - below) / (yy - xx) * (rows_of(axis, [position])[0][2] - yy)

    noise = cap.bytes * NOISE_SHARE
    far = _meeting(axis, straight, cap, noise, peak)
    near = _meeting(axis, square, cap, noise, peak)

    def middle(position: float) -> float:
        return (straight(position) + square(position)) / 2

    apart = (far.edge - near.edge) / 2
    return Forecast(middle, near.edge + apart, near.error + apart, near.surprise + apart)


def _meeting(axis: Axis, peak: Bytes, cap: Cap, error_bytes: float, seen_bytes: float) -> Forecast:
    """Find the position at which a growing peak meets the cap, and turn bytes into positions."""
    low, high = -1.0, 2.0 * axis.count + 8
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if peak(middle) <= cap.bytes else (low, middle)
    slope = max(peak(low + 0.5) - peak(low - 0.5), 1e-9 * max(cap.bytes, 1.0))
    surprise = max(SURPRISE_SHARE * cap.bytes + JUMP_SHARE * abs(cap.bytes - seen_bytes), cap.error)
    return Forecast(peak, low, (error_bytes + cap.error) / slope, surprise / slope)
