"""The slope of a series with its interval and its significance: Theil-Sen, Sen and Kendall.

The slope is the median over all pairs, which up to 29 % of outliers do not move. Its interval and
its significance come from Kendall's count of pairs that rise. Neighbours that lie on the same side
of the line tell less than as many independent points: the variance grows accordingly. Where they
wander, the slope itself varies, and the interval follows the rises between eight blocks.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import sqrt
from statistics import median, stdev
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

NORMAL_95 = 1.96
STUDENT_95 = 2.45  # with six degrees of freedom, for the rises between eight blocks
_BLOCKS = 8
_WANDERING = 0.2
_CLEAR = 100  # times what is off the line: neither what wanders nor what bends is so straight
_MAD = 1.4826  # times the median absolute deviation: the standard deviation of a normal law
_MOST_CORRELATED = 0.9


class Trend(NamedTuple):
    """A slope with its interval of 95 %; `score` is Kendall's, in standard deviations.

    `noise` is how far the points lie from the line.
    """

    slope: float
    low: float
    high: float
    score: float
    noise: float


def trend(at: Sequence[float], values: Sequence[float]) -> Trend:
    """Return the trend of at least two points.

    Of a rise that is clear beside the noise, it does not matter how the noise goes.
    """
    pairs = [(i, j) for j in range(len(at)) for i in range(j)]
    slopes = sorted((values[j] - values[i]) / (at[j] - at[i]) for i, j in pairs)
    slope = median(slopes)
    rest = [value - slope * x for x, value in zip(at, values, strict=True)]
    middle = median(rest)
    rest = [one - middle for one in rest]
    count = sum((one > 0) - (one < 0) for one in slopes)
    alike = _alikeness(rest)
    noise = _MAD * median(abs(one) for one in rest)
    off = sqrt(sum(one * one for one in rest) / len(rest))
    clear = abs(slope) * (at[-1] - at[0]) > _CLEAR * off
    variance = _variance(values) * (1 + alike) / (1 - alike)
    reach = NORMAL_95 * sqrt(variance)
    wide = _block_error(at, values) if alike > _WANDERING else 0.0
    return Trend(
        slope=slope,
        low=min(slopes[max(0, round((len(slopes) - reach) / 2))], slope - wide),
        high=max(slopes[min(len(slopes) - 1, round((len(slopes) + reach) / 2))], slope + wide),
        score=_score(count, _variance(values) if clear else variance),
        noise=noise,
    )


def _score(count: int, variance: float) -> float:
    """Return how unlikely the count is, one less for it is a count."""
    if not count or not variance:
        return 0.0
    return (count - 1 if count > 0 else count + 1) / sqrt(variance)


def _variance(values: Sequence[float]) -> float:
    """Return the variance of Kendall's count, less for values that are there several times."""
    ties = Counter(values).values()
    return (_cubic(len(values)) - sum(map(_cubic, ties))) / 18


def _cubic(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)


def _alikeness(rest: Sequence[float]) -> float:
    """Return how alike neighbours are: 0 where each lies anywhere, towards 1 where they wander."""
    whole = sum(one * one for one in rest)
    if not whole:
        return 0.0
    alike = sum(before * after for before, after in pairwise(rest)) / whole
    return min(max(alike, 0.0), _MOST_CORRELATED)


def _block_error(at: Sequence[float], values: Sequence[float]) -> float:
    """Return half the interval of a slope that itself varies, from the rises between blocks."""
    size = len(at) // _BLOCKS
    if not size:
        return 0.0
    ends = [len(at) - 1 - number * size for number in range(_BLOCKS)][::-1]
    rises = [(values[j] - values[i]) / (at[j] - at[i]) for i, j in pairwise(ends)]
    return STUDENT_95 * stdev(rises) / sqrt(len(rises))
