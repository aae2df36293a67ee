"""Where a series changes its course: the latest straight stretch, and the teeth of a saw.

warm-up ____________/      the latest stretch begins at the foot of the rise
/|/|/|/|/|/|/|             teeth: the floor is what is left after each fall
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 8
"""Points that a stretch has to have: Kendall's count of seven is never beyond three deviations."""
DROP = 0.35
_CHANGES = 4
_BETTER = 12.0  # the F ratio of two lines against one
_OTHER_SLOPE = 0.5
_JUMP = 0.15
_STRAIGHT = 1e-3


class _Sums:
    """Sums from the start, for the squares that a straight line leaves over any stretch."""

    def __init__(self, at: Sequence[float], values: Sequence[float]) -> None:
        columns = (at, values, map(_square, at), map(_times, at, values), map(_square, values))
        self._sums = [[0.0, *accumulate(one)] for one in columns]

    def line(self, first: int, behind: int) -> tuple[float, float, float]:
        """Return intercept, slope and the sum of squares left over."""
        count = behind - first
        x, y, xx, xy, yy = (one[behind] - one[first] for one in self._sums)
        wide = xx - x * x / count
        slope = (xy - x * y / count) / wide if wide > 0 else 0.0
        left = yy - y * y / count - slope * (xy - x * y / count)
        return (y - slope * x) / count, slope, max(left, 0.0)


def latest_stretch(at: Sequence[float], values: Sequence[float]) -> int:
    """Return the index at which the latest straight stretch begins: 0 where there is but one."""
    span, height = at[-1] - at[0], max(values) - min(values)
    if not span or not height:
        return 0
    scaled_at = [(one - at[0]) / span for one in at]
    sums = _Sums(scaled_at, [(one - values[0]) / height for one in values])
    start = 0
    for _ in range(_CHANGES):
        found = _split(sums, scaled_at, start)
        if found is None:
            break
        start = found
    return start


def _split(sums: _Sums, at: Sequence[float], start: int) -> int | None:
    """Return where the rest from `start` on is best cut in two, None if it is one line."""
    count = len(at) - start
    if count < FEWEST + 2:
        return None
    whole = sums.line(start, len(at))[2]
    if whole <= count * _STRAIGHT**2:
        return None
    cuts = range(start + 1, len(at) - FEWEST + 1)
    best = min(cuts, key=lambda cut: sums.line(start, cut)[2] + sums.line(cut, len(at))[2])
    before, after = sums.line(start, best), sums.line(best, len(at))
    left = before[2] + after[2]
    if (whole - left) / 3 < _BETTER * left / max(count - 5, 1):
        return None
    differs = abs(after[1] - before[1]) > _OTHER_SLOPE * max(abs(after[1]), abs(before[1]))
    jump = abs(after[0] + after[1] * at[best] - before[0] - before[1] * at[best])
    return best if (differs and best - start > 1) or jump > _JUMP else None


class Teeth(NamedTuple):
    """The floor of each tooth as indices, and where the latest tooth begins."""

    floors: tuple[int, ...]
    latest: int
    longest: int


def teeth(values: Sequence[float]) -> Teeth:
    """Return the teeth: each ends with a fall by a third of all that is between low and high."""
    fall = DROP * (max(values) - min(values))
    starts, highest = [0], values[0]
    for index, value in enumerate(values):
        if fall and value <= highest - fall:
            starts.append(index)
            highest = value
        highest = max(highest, value)
    ends = [*starts[1:], len(values)]
    floors = tuple(
        min(range(first, behind), key=lambda index: (values[index], -index))
        for first, behind in zip(starts, ends, strict=True)
    )
    lengths = [behind - first for first, behind in pairwise(starts)]
    return Teeth(floors, starts[-1], max(lengths, default=0))


def _square(value: float) -> float:
    return value * value


def _times(left: float, right: float) -> float:
    return left * right
