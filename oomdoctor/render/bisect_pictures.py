"""The pictures of a threshold: the peak along one axis, and the frontier over two as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import FIT, HOST_OOM, OOM
from oomdoctor.render.bisect_words import value_words
from oomdoctor.render.page import HeatCell, HeatMap, Plot, PlotPoint
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.model.bisect import Bisected
    from oomdoctor.model.trial import Curve, SearchAnswer, TrialResult

_SAMPLES = 48
_BEYOND = 1.08
_MOST_COLUMNS = 10
_MOST_CURVES = 5
POINTS = ((FIT, "fits, at its peak"), (OOM, "out of memory, drawn at the limit"))
FITS, UNKNOWN, FAILS = "fits", "unknown", "fails"
WORDS = (
    (FITS, "a trial fitted, or must by a larger one that did"),
    (UNKNOWN, "not known"),
    (FAILS, "a trial failed, or must by a smaller one that did"),
)


def threshold_plot(made: Bisected) -> Plot | None:
    """Return the points of a search with the curve through them and the limit."""
    answer = made.answer
    if answer is None or answer.curve is None:
        return None
    name, curve = answer.bracket.axis, answer.curve
    values = [float(one.values[name]) for one in answer.trials if name in one.values]
    width = max([*values, *(x for x, _ in curve.points)], default=1.0) * _BEYOND or 1.0
    left = min(values, default=0.0)
    ceiling = _ceiling(made, [(curve, answer)])
    drawn = _drawn(curve, left, width, ceiling)
    failed = ceiling / _BEYOND if made.limit_bytes is None else float(made.limit_bytes)
    points = tuple(
        point
        for one in answer.trials
        if (point := _point(one, curve, failed, float(one.values[name]))) is not None
    )
    return Plot(
        caption=f"The peak ({curve.quantity}) at each {name} that was tried",
        across=name,
        points=points,
        line=drawn,
        width=width,
        height=ceiling,
        top=format_size(ceiling),
        right=value_words(round(width)),
        level=None
        if made.limit_bytes is None
        else (f"limit {format_size(made.limit_bytes)}", float(made.limit_bytes)),
        words=POINTS,
    )


def _drawn(
    curve: Curve, left: float, right: float, ceiling: float
) -> tuple[tuple[float, float], ...]:
    """Return the places of a curve, as far as they lie in the picture."""
    xs = [left + (right - left) * at / _SAMPLES for at in range(_SAMPLES + 1)]
    return tuple((x, y) for x in xs if 0 <= (y := curve.at(x)) <= ceiling)


def _ceiling(made: Bisected, curves: list[tuple[Curve, SearchAnswer]]) -> float:
    """Return how high the picture is: a little above the limit, or above all that was measured."""
    peaks = [float(y) for curve, _ in curves for _, y in curve.points]
    peaks += [
        float(one.peak_bytes)
        for _, answer in curves
        for one in answer.trials
        if one.peak_bytes is not None
    ]
    if made.limit_bytes is not None:
        peaks.append(float(made.limit_bytes))
    return max(peaks, default=1.0) * _BEYOND


def frontier_plot(made: Bisected) -> Plot | None:
    """Return the fitted curves of the rows of a frontier with their trials and the limit."""
    frontier = made.frontier
    if frontier is None:
        return None
    fitted = [
        (f"{frontier.outer} {value_words(value)}", answer.curve, answer)
        for value, answer in frontier.rows
        if answer.curve is not None
    ]
    if not fitted:
        return None
    step = -(-len(fitted) // _MOST_CURVES)
    shown = fitted[::step]
    name = frontier.inner
    curves = [(curve, answer) for _, curve, answer in shown]
    values = [
        float(one.values[name])
        for _, answer in curves
        for one in answer.trials
        if name in one.values
    ]
    width = max([*values, *(x for curve, _ in curves for x, _ in curve.points)], default=1.0)
    ceiling = _ceiling(made, curves)
    failed = ceiling / _BEYOND if made.limit_bytes is None else float(made.limit_bytes)
    points = (
        point._replace(label=f"{row}, {name} {point.label}")
        for row, curve, answer in shown
        for one in answer.trials
        if name in one.values
        and (point := _point(one, curve, failed, float(one.values[name]))) is not None
    )
    limit = made.limit_bytes
    return Plot(
        caption=f"The peak ({curves[0][0].quantity}) at each {name}, by {frontier.outer}",
        across=name,
        points=tuple(points),
        line=(),
        lines=tuple(
            (row, _drawn(curve, min(values, default=0.0), width * _BEYOND, ceiling))
            for row, curve, _ in shown
        ),
        width=width * _BEYOND or 1.0,
        height=ceiling,
        top=format_size(ceiling),
        right=value_words(round(width * _BEYOND)),
        level=None if limit is None else (f"limit {format_size(limit)}", float(limit)),
        words=POINTS,
    )


def _point(one: TrialResult, curve: Curve, failed: float, x: float) -> PlotPoint | None:
    if one.outcome in (OOM, HOST_OOM):
        return PlotPoint(x, failed, OOM, f"{value_words(x)}: out of memory")
    measured = dict(curve.points).get(x)
    height = measured if measured is not None else one.peak_bytes
    if one.outcome != FIT or height is None:
        return None
    return PlotPoint(x, float(height), FIT, f"{value_words(x)}: {format_size(height)}")


def frontier_heat(made: Bisected) -> HeatMap | None:
    """Return the frontier as a map: what is known of each pair of values."""
    frontier = made.frontier
    if frontier is None or not frontier.rows:
        return None
    columns = _columns([answer for _, answer in frontier.rows])
    if not columns:
        return None
    rows = tuple(
        (value_words(value), tuple(_cell(column, answer) for column in columns))
        for value, answer in frontier.rows
    )
    return HeatMap(
        caption=f"GiB at the peak where {frontier.inner} fits, by the curve of its row",
        down=frontier.outer,
        across=frontier.inner,
        columns=tuple(value_words(one) for one in columns),
        rows=rows,
        words=WORDS,
    )


def _columns(answers: list[SearchAnswer]) -> list[float]:
    """Return values of the inner axis that show the edge of every row, not too many of them."""
    edges = {
        value
        for one in answers
        for value in (one.bracket.fits_at, one.bracket.ooms_at)
        if value is not None
    }
    found = sorted(edges)
    if len(found) <= _MOST_COLUMNS:
        return found
    picked = {round(at * (len(found) - 1) / (_MOST_COLUMNS - 1)) for at in range(_MOST_COLUMNS)}
    return [found[at] for at in sorted(picked)]


def _cell(value: float, answer: SearchAnswer) -> HeatCell:
    bracket = answer.bracket
    if bracket.fits_at is not None and value <= bracket.fits_at:
        peak = None if answer.curve is None else answer.curve.at(value)
        return HeatCell("fits" if peak is None else f"{peak / (1 << 30):.1f}", FITS)
    if bracket.ooms_at is not None and value >= bracket.ooms_at:
        return HeatCell("oom", FAILS)
    return HeatCell("?", UNKNOWN)
