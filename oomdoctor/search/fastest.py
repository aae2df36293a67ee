"""The fastest setting that fits: tokens per second beside memory.

Speed grows with a batch until the device is busy, and falls where memory becomes tight. So the edge
is found first; then smaller values are tried, each half the one before, while they are about as
fast, and at last what lies beside the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import FIT
from oomdoctor.record import replace
from oomdoctor.search.answer import answer
from oomdoctor.search.edge import HEADROOM, Known, edge_of
from oomdoctor.search.rounds import Ask, Stopped
from oomdoctor.search.tried import Tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from oomdoctor.model.trial import Curve, Frontier, SearchAnswer, TrialResult, Value
    from oomdoctor.search.axes import Axis
    from oomdoctor.search.rounds import Search

SLOWER = 0.03
"""A value this much slower than the best is on the way down."""
FAR_SLOWER = 0.8
"""Of the speed of the best: below this, no value that is smaller still is tried."""
ALIKE = 0.01
"""Between two values whose speeds differ by less, no faster one is looked for."""


def find_fastest(
    axis: Axis,
    *,
    cap_bytes: float | None = None,
    estimate: Curve | None = None,
    error: float = 0.05,
    headroom: float = HEADROOM,
    fixed: Mapping[str, Value] | None = None,
    width: int = 1,
) -> Search[SearchAnswer]:
    """Search for the edge, then for the fastest value below it: `best` of the answer."""
    known = Known(
        cap_bytes=cap_bytes,
        estimate=estimate,
        error=error,
        headroom=headroom,
        fixed=fixed or {},
        width=width,
    )
    tried = Tried(axis.check())
    edge = yield from edge_of(tried, known)
    low = tried.low
    if low < 0 or tried.halted or edge.stopped:
        return replace(edge, best=fastest(edge.trials))
    if fastest(edge.trials) is None:
        return replace(edge, stopped="no trial told how many tokens it did in a second")
    seen: set[int] = set(tried.fits)
    while tried.halted is None and (position := _next(tried, seen)) is not None:
        seen.add(position)
        ask = Ask(values={**known.fixed, axis.name: axis.value(position)})
        try:
            results = yield (ask,)
        except Stopped as stop:
            results, tried.halted = stop.results, stop.reason
        for result in results:
            tried.learn(result)
    made = answer(tried, cap_bytes, estimate, headroom, known.times, tried.halted)
    return replace(made, stopped=tried.halted, best=fastest(tried.trials))


def fastest(trials: Iterable[TrialResult]) -> TrialResult | None:
    """Return the fastest trial that fits, of equals the first; None where none tells its speed."""
    told = [one for one in trials if one.outcome == FIT and one.tokens_per_second is not None]
    return max(told, key=lambda one: one.tokens_per_second or 0.0, default=None)


def fastest_of(frontier: Frontier) -> TrialResult | None:
    """Return the fastest trial of a frontier that fits."""
    return fastest(frontier.trials)


def _next(tried: Tried, seen: set[int]) -> int | None:
    """Return the position to try next for its speed; None when no other is worth it."""
    low = tried.low
    speeds = _speeds(tried, low)
    best = max(speeds, key=lambda one: speeds[one])
    # downwards by halves, as long as the last two were about as fast as the best
    last = sorted(seen & set(range(low + 1)))
    step = low
    slow = 0
    while step > 0 and slow < 2:
        step //= 2
        near = next((one for one in last if abs(one - step) <= step // 4), None)
        if near is None:
            return step
        share = speeds.get(near, 0.0) / speeds[best]
        slow += 2 if share < FAR_SLOWER else share < 1 - SLOWER
    beside = [one for one in last if one < best][-1:] + [one for one in last if one > best][:1]
    gaps = [n for n in beside if not _close(n, best) and _may_rise(speeds, n, best)]
    if not gaps:
        return None
    other = max(gaps, key=lambda one: speeds.get(one, 0.0))
    middle = (other + best) // 2
    return middle if middle not in seen else None


def _may_rise(speeds: Mapping[int, float], other: int, best: int) -> bool:
    """Say whether a faster value may lie between a position and the best.

    Speed has one hill: between the two it stays below the line through what lies beyond `other`.
    """
    if other not in speeds or speeds[other] >= speeds[best] * (1 - ALIKE):
        return False
    beyond = [one for one in speeds if (one - other) * (other - best) > 0]
    if not beyond:
        return True
    far = min(beyond, key=lambda one: abs(one - other))
    slope = (speeds[other] - speeds[far]) / (other - far)
    return speeds[other] + slope * (best - other) > speeds[best] * (1 + SLOWER)


def _close(one: int, other: int) -> bool:
    """Say whether two positions are so near that speed tells them apart no longer."""
    return abs(one - other) <= max(1, max(one, other) // 8)


def _speeds(tried: Tried, low: int) -> dict[int, float]:
    """Return the mean speed of each position that fits."""
    found = {}
    for position, results in tried.fits.items():
        told = [one.tokens_per_second for one in results if one.tokens_per_second is not None]
        if told and position <= low:
            found[position] = sum(told) / len(told)
    return found
