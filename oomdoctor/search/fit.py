"""Fits a peak on its axes: weighted least squares with coefficients that are not negative.

Memory grows with what grows, so a negative coefficient is noise or a wrong model. With at most six
columns, all choices of columns are tried, which needs no iteration and no library.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fitted(NamedTuple):
    """Coefficients by column, and the largest distance from a point that was fitted."""

    coefficients: tuple[float, ...]
    residual: float

    def at(self, row: Sequence[float]) -> float:
        """Return what the fit says for a row of the columns' values."""
        return sum(one * value for one, value in zip(self.coefficients, row, strict=True))


def fitted(
    rows: Sequence[Sequence[float]], values: Sequence[float], weights: Sequence[float] | None = None
) -> Fitted | None:
    """Return the non-negative combination of columns that is nearest to the values.

    Of fits that are equally near, the one with the fewest columns and then the first columns is
    taken. None without points, or where no column says anything.
    """
    if not rows:
        return None
    weights = weights or [1.0] * len(rows)
    scales = [max((abs(row[k]) for row in rows), default=0.0) or 1.0 for k in range(len(rows[0]))]
    scaled = [[value / scale for value, scale in zip(row, scales, strict=True)] for row in rows]
    best: tuple[float, list[float]] | None = None
    tolerance = 1e-9 * sum(w * v * v for w, v in zip(weights, values, strict=True)) ** 0.5
    for size in range(1, min(len(scales), len(rows)) + 1):
        for columns in combinations(range(len(scales)), size):
            found = _least_squares(scaled, values, weights, columns)
            if found is None or min(found) < 0:
                continue
            full = [0.0] * len(scales)
            for column, one in zip(columns, found, strict=True):
                full[column] = one
            error = _distance(scaled, values, weights, full)
            if best is None or error < best[0] - tolerance:
                best = (error, full)
    if best is None:
        return None
    coefficients = tuple(one / scale for one, scale in zip(best[1], scales, strict=True))
    made = Fitted(coefficients, 0.0)
    residual = max(abs(made.at(row) - value) for row, value in zip(rows, values, strict=True))
    return Fitted(coefficients, residual)


def spread(rows: Sequence[Sequence[float]], at: Sequence[float]) -> float | None:
    """Return how much noise of size 1 in each value moves the fit at a row: its standard error.

    None where the points do not determine the fit there.
    """
    scales = [max((abs(row[k]) for row in rows), default=0.0) or 1.0 for k in range(len(at))]
    scaled = [[value / scale for value, scale in zip(row, scales, strict=True)] for row in rows]
    target = [value / scale for value, scale in zip(at, scales, strict=True)]
    normal = [
        [sum(row[i] * row[j] for row in scaled) for j in range(len(at))] for i in range(len(at))
    ]
    solved = _solved(normal, target)
    if solved is None:
        return None
    return math.sqrt(max(0.0, sum(a * b for a, b in zip(solved, target, strict=True))))


def _distance(
    rows: Sequence[Sequence[float]],
    values: Sequence[float],
    weights: Sequence[float],
    coefficients: Sequence[float],
) -> float:
    total = 0.0
    for row, value, weight in zip(rows, values, weights, strict=True):
        off = sum(a * b for a, b in zip(coefficients, row, strict=True)) - value
        total += weight * off * off
    return math.sqrt(total)


def _least_squares(
    rows: Sequence[Sequence[float]],
    values: Sequence[float],
    weights: Sequence[float],
    columns: Sequence[int],
) -> list[float] | None:
    """Return the coefficients of some columns by their normal equations."""
    points = list(zip(rows, values, weights, strict=True))
    normal = [[sum(w * row[i] * row[j] for row, _, w in points) for j in columns] for i in columns]
    target = [sum(w * row[i] * value for row, value, w in points) for i in columns]
    return _solved(normal, target)


def _solved(matrix: Sequence[Sequence[float]], target: Sequence[float]) -> list[float] | None:
    """Solve a small system by elimination with pivots; None where it is singular."""
    size = len(target)
    rows = [[*row, value] for row, value in zip(matrix, target, strict=True)]
    largest = max((abs(one) for row in matrix for one in row), default=0.0)
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(rows[i][k]))
        if abs(rows[pivot][k]) <= 1e-13 * largest:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(size):
            if i != k and rows[i][k]:
                part = rows[i][k] / rows[k][k]
                rows[i] = [a - part * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [rows[k][size] / rows[k][k] for k in range(size)]
