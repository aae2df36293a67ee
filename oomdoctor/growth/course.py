"""The course that a series takes: level, rising, slowing down, levelled off, or teeth of a saw.

A rise counts once it is beyond chance, beyond the noise and beyond a least number of bytes, goes on
in its second half as in its first, and was there already when a fifth fewer points were known.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from oomdoctor.growth.points import windows
from oomdoctor.growth.stretches import FEWEST, latest_stretch, teeth
from oomdoctor.growth.trend import trend
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.growth.points import Point
    from oomdoctor.growth.trend import Trend

SCORE = 3.0
UNSURE_SCORE = 2.0
TEETH_SCORE = 2.5
FEWEST_TEETH = 6
_SLOWER = 0.5
_NOISES = 3.0
_BEFORE = 0.8
_LONGER = 3  # a tooth that lasts as long as three has become a stretch of its own
_SAME = 0.1
_LEVEL = 0.05


class Course(Enum):
    """How a series goes on, as far as it is known."""

    EARLY = "too early"
    UNSURE = "rising of late"
    LEVEL = "level"
    LEVELLED = "levelled off"
    TEETH = "rises and falls back"
    SLOWING = "slowing down"
    RISING = "rising"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A course with the stretch that it was read from, which begins at the step `since`.

    `slope`, `low` and `high` are bytes per step, `rise` the bytes over the stretch from `first`
    to `last`, the floors at its ends. `highest` is the peak of the whole series.
    """

    course: Course
    since: float
    until: float
    slope: float
    low: float
    high: float
    first: int
    last: int
    highest: int
    score: float
    windows: int

    @property
    def rise(self) -> int:
        """Return the bytes that the floor rose over the stretch."""
        return self.last - self.first

    @property
    def rises(self) -> bool:
        """Whether the floor rises."""
        return self.course is Course.RISING


def growth_of(points: Sequence[Point], *, least_bytes: int) -> Growth | None:
    """Return the growth of a series, None without points."""
    if not points:
        return None
    found = _read(windows(points), least_bytes)
    if found.course is not Course.RISING:
        return found
    before = _read(windows(points[: round(len(points) * _BEFORE)]), least_bytes)
    if before.course in (Course.RISING, Course.SLOWING):
        return found
    return replace(found, course=Course.UNSURE)


def _read(seen: Sequence[Point], least_bytes: int) -> Growth:
    at, floors = [one.at for one in seen], [one.low for one in seen]
    if len(seen) < FEWEST:
        return _growth(seen, Course.EARLY, None)
    found = teeth(floors)
    start = 0
    if len(found.floors) > 1:
        length = len(seen) - found.latest
        if length < max(_LONGER * found.longest, 2 * FEWEST):
            return _of_teeth(seen, found.floors, least_bytes)
        start = found.latest
    start += latest_stretch(at[start:], floors[start:])
    return _of_stretch(seen, start, least_bytes)


def _of_teeth(seen: Sequence[Point], floors: Sequence[int], least_bytes: int) -> Growth:
    """Judge the floors that are left after each fall, but for the warm-up before the first."""
    lows = [seen[index] for index in floors[1:]]
    if len(lows) < FEWEST_TEETH:
        return _growth(seen, Course.TEETH, None)
    line = trend([one.at for one in lows], [one.low for one in lows])
    proven = line.score >= TEETH_SCORE and line.low > 0 and _enough(lows, line, least_bytes)
    return _growth(lows, Course.RISING if proven else Course.TEETH, line)


def _of_stretch(seen: Sequence[Point], start: int, least_bytes: int) -> Growth:
    stretch = seen[start:]
    line = trend([one.at for one in stretch], [one.low for one in stretch])
    if not (line.score >= SCORE and line.low > 0 and _enough(stretch, line, least_bytes)):
        if line.score >= UNSURE_SCORE and _enough(stretch, line, least_bytes):
            return _growth(stretch, Course.UNSURE, line)
        rose = stretch[0].low - min(one.low for one in seen[: start + 1])
        course = Course.LEVELLED if start and rose >= least_bytes else Course.LEVEL
        return _growth(stretch, course, line)
    middle = len(stretch) // 2
    early, late = (_slope(half) for half in (stretch[: middle + 1], stretch[middle:]))
    slows = late < _SLOWER * early or late <= 0
    return _growth(stretch, Course.SLOWING if slows else Course.RISING, line)


def _enough(points: Sequence[Point], line: Trend, least_bytes: int) -> bool:
    rise = line.slope * (points[-1].at - points[0].at)
    return rise >= max(least_bytes, _NOISES * line.noise)


def _slope(points: Sequence[Point]) -> float:
    return trend([one.at for one in points], [one.low for one in points]).slope


def _growth(points: Sequence[Point], course: Course, line: Trend | None) -> Growth:
    return Growth(
        course=course,
        since=points[0].at,
        until=points[-1].at,
        slope=line.slope if line else 0.0,
        low=line.low if line else 0.0,
        high=line.high if line else 0.0,
        first=points[0].low,
        last=points[-1].low,
        highest=max(one.high for one in points),
        score=line.score if line else 0.0,
        windows=len(points),
    )
