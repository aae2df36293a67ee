"""A series of figures that never takes more than a fixed room, and the floors of its windows.

What a step or a moment uses on top of what is kept does not count for growth, so that a series is
looked at by windows: the lowest value in each, and the highest.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, sqrt
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_POINTS = 2048
MOST_WINDOWS = 48


class Point(NamedTuple):
    """A step or a moment, or several of them together.

    `at` is the step's number, or `seconds` again where there are no steps; `seconds` counts from
    the start of the run. `low` is what was kept at the end, `high` the peak.
    """

    at: float
    seconds: float
    low: int
    high: int


class Track:
    """Points in the order in which they came; neighbours are put together when they get many."""

    def __init__(self, most: int = MOST_POINTS) -> None:
        """Hold nothing yet."""
        self._most = most
        self._stride = 1
        self._points: list[Point] = []
        self._open: list[Point] = []

    def add(self, at: float, seconds: float, low: int, high: int | None = None) -> None:
        """Add a point; one that is not behind the last one gets the next number."""
        last = self.last
        if last is not None and at <= last.at:
            at = last.at + 1
        self._open.append(Point(at, seconds, low, low if high is None else max(low, high)))
        if len(self._open) >= self._stride:
            self._points.append(_together(self._open))
            self._open.clear()
        if len(self._points) >= self._most:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            self._points = [_together(pair) for pair in pairs]
            self._stride *= 2

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points; those that wait to be put together are left out."""
        return tuple(self._points)

    @property
    def last(self) -> Point | None:
        """Return the latest point as it came, None before the first."""
        if self._open:
            return self._open[-1]
        return self._points[-1] if self._points else None


def windows(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return windows of equally many points; the first points are left out where they don't fit.

    A window stands where its lowest value is. It has half the square root of the number of points,
    so that both the windows and what is in each grow with the series.
    """
    size = max(1, ceil(len(points) / MOST_WINDOWS), round(sqrt(len(points)) / 2))
    first = len(points) % size
    return tuple(_window(points[start : start + size]) for start in range(first, len(points), size))


def _window(points: Sequence[Point]) -> Point:
    lowest = min(points, key=lambda one: one.low)
    return lowest._replace(high=max(one.high for one in points))


def seconds_each(points: Sequence[Point]) -> float | None:
    """Return the seconds that one step takes of late, the median over the last half."""
    late = points[len(points) // 2 :]
    each = sorted(
        (after.seconds - before.seconds) / (after.at - before.at)
        for before, after in pairwise(late)
        if after.at > before.at
    )
    return each[len(each) // 2] if each else None


def _together(points: Sequence[Point]) -> Point:
    last = points[-1]
    return Point(
        last.at, last.seconds, min(one.low for one in points), max(one.high for one in points)
    )
