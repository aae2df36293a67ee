"""The edge on one axis: the largest value that fits, and the smallest that does not.

A search begins where an estimate says that memory ends, or with two small values where there is
none; what it measures moves the next guess. The bracket is closed by trials alone: the lower end
fits twice, the upper fails, one step apart. A guess is never more than some times beyond the
largest value that fits, until a trial has come out as it was foreseen; and after four guesses that
misled the search halves what is left, so that it never takes long.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.model.trial import REFUSED, Curve, Value
from oomdoctor.record import dataclass, field
from oomdoctor.search.answer import answer
from oomdoctor.search.forecast import FLAT_SHARE, Forecast, forecast
from oomdoctor.search.guess import CHANCE_OF_A_FIT, LANDING, Chances
from oomdoctor.search.rounds import Ask, Stopped
from oomdoctor.search.tried import Tried

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.trial import SearchAnswer, TrialResult
    from oomdoctor.search.axes import Axis
    from oomdoctor.search.forecast import Cap
    from oomdoctor.search.rounds import Search

HEADROOM = 0.05
MOST_MISLED = 4
MOST_GUIDED = 9
LARGEST_JUMP = 8
FEW, FAR = 8, 0.1
_MOST_UNTOLD, _MOST_UNTOLD_AT_FIRST = 6, 3
_TOLD_RIGHT = 0.1  # of what a peak grew by: how near a forecast was that a trial has verified


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a search is told: what there is, what is expected, and how its answer is to be.

    `cap_bytes` is what decides (of the device, or of the host on an axis of host memory); without
    it a failed trial has to tell. `estimate` is the peak that is expected, `error` its relative
    error. `fixed` are values of other axes. `width` trials may run side by side. The lower end has
    to fit so many `times`.
    """

    cap_bytes: float | None = None
    estimate: Curve | None = None
    error: float = 0.05
    headroom: float = HEADROOM
    fixed: Mapping[str, Value] = field(default_factory=dict)
    width: int = 1
    times: int = 2


def find_edge(
    axis: Axis,
    *,
    cap_bytes: float | None = None,
    estimate: Curve | None = None,
    error: float = 0.05,
    headroom: float = HEADROOM,
    fixed: Mapping[str, Value] | None = None,
    width: int = 1,
    times: int = 2,
) -> Search[SearchAnswer]:
    """Search for the edge on an axis, as `Known` has it; the best so far when it is stopped."""
    known = Known(
        cap_bytes=cap_bytes,
        estimate=estimate,
        error=error,
        headroom=headroom,
        fixed=fixed or {},
        width=width,
        times=times,
    )
    return edge_of(Tried(axis.check()), known)


def most_trials(axis: Axis) -> int:
    """Return how many trials a search takes at most, where every guess misleads.

    After the guided trials it doubles its way up and halves its way back; the first trial and the
    second run of the edge come besides. Runs of the same values that differ may add to that.
    """
    return MOST_GUIDED + 2 * math.ceil(math.log2(axis.count + 1)) + 3


def edge_of(tried: Tried, known: Known) -> Search[SearchAnswer]:
    """Search for the edge of an axis of which something may have been tried."""
    axis, state = tried.axis, _Guesses(tried, known)
    asked: dict[int, int] = {}
    stopped: str | None = None
    while stopped is None and (positions := state.next()):
        asks = []
        for position in positions:
            repeat = asked[position] = asked.get(position, -1) + 1
            values = {**known.fixed, axis.name: axis.value(position)}
            asks.append(Ask(values=values, repeat=repeat))
        try:
            results = yield tuple(asks)
        except Stopped as stop:
            results, tried.halted = stop.results, stop.reason
        state.learn(results)
        stopped = tried.halted or state.stopped
    return answer(
        tried,
        known.cap_bytes,
        known.estimate,
        known.headroom,
        known.times,
        stopped or state.blocked,
    )


class _Guesses:
    """Chooses what to try next, and sees how well it was chosen."""

    def __init__(self, tried: Tried, known: Known) -> None:
        self._tried = tried
        self._known = known
        self._misled = 0
        self._guided = 0
        self._verified = False
        self._expected: tuple[int, float, Forecast] | None = None
        self._untold = 0
        self.stopped: str | None = None
        self.blocked: str | None = None

    def next(self) -> list[int]:
        """Return the positions of the next round; none when nothing is left to try."""
        tried = self._tried
        low, high = tried.low, tried.high
        if high - low == 1:
            missing = self._known.times - tried.times(low) if low >= 0 else 0
            return [low] * min(max(0, missing), self._known.width)
        wanted = self._wanted(low, high)
        free = tried.free(wanted)
        if tried.untold and (not free or self._untold > 1):
            free = self._around(low, high, wanted)
        if not free:
            one = tried.untold[max(tried.untold)]
            value = one.values[tried.axis.name]
            self.blocked = f"{tried.axis.name} {value} ended as {one.outcome}: {one.reason}"
        if free != wanted:
            self._expected = None
        return free[: self._known.width]

    def learn(self, results: tuple[TrialResult, ...]) -> None:
        """Take a round in: what it showed, and whether it came out as foreseen."""
        before = self._tried.low, self._tried.high
        for result in results:
            known = len(self._tried.untold)
            self._tried.learn(result)
            self._untold += len(self._tried.untold) > known
            if result.outcome == REFUSED:
                self._tried.halted = result.reason or REFUSED
        tried = self._tried
        most = _MOST_UNTOLD if tried.fits or tried.failed else _MOST_UNTOLD_AT_FIRST
        if self._untold >= most and tried.untold:
            last = tried.untold[max(tried.untold)]
            self.stopped = (
                f"{self._untold} trials ended without telling whether they fit, "
                f"the last as {last.outcome}: {last.reason}"
            )
        if self._expected is not None:
            self._compare(*self._expected, before)
            self._expected = None

    def _wanted(self, low: int, high: int) -> list[int]:
        """Return the positions that would tell most, the most telling first."""
        tried, told = self._tried, self._known
        cap = tried.cap(told.cap_bytes)
        open_above = high == tried.axis.count
        foreseen = None
        if cap is not None:
            foreseen = forecast(tried.axis, tried.points(), cap, told.estimate, told.error)
        plain = self._misled >= MOST_MISLED or self._guided >= MOST_GUIDED
        if low < 0 and (foreseen is None or (plain and open_above)):
            # without an estimate the lowest value is the safest, and its peak the first known
            return [0]
        if plain or (foreseen is None and not open_above):
            return self._halved(low, high)
        if foreseen is None:
            return [self._second(low, high, cap)]
        return self._guided_by(foreseen, low, high)

    def _guided_by(self, foreseen: Forecast, low: int, high: int) -> list[int]:
        chances = Chances(foreseen.edge, foreseen.error, foreseen.surprise, low, high)
        best = chances.best(CHANCE_OF_A_FIT if self._unexplored(low, high) else 0.5)
        best = min(best, self._reach(low))
        self._expected = (best, chances.fits(best), foreseen)
        self._guided += 1
        wanted = [best]
        if self._known.width > 1 and chances.lands(best) >= LANDING and best < self._reach(low):
            edge = best if chances.fits(best) >= 0.5 else best - 1
            wanted = [best, edge if edge != best else best + 1]
            wanted += [edge] * (self._known.times - 1)
        elif self._known.width > 1:
            shares = [(k + 1) / (self._known.width + 1) for k in range(self._known.width)]
            wanted = sorted({min(chances.likely(one), self._reach(low)) for one in shares} | {best})
        return [one for one in wanted if low < one < high][: self._known.width] or [best]

    def _unexplored(self, low: int, high: int) -> bool:
        """Say whether a peak is worth more than halving: the largest known is far from the edge."""
        if high == self._tried.axis.count:
            return len(self._tried.fits) < 2
        return high - low > max(FEW, FAR * high)

    def _reach(self, low: int) -> int:
        """Return the largest position that may be tried now."""
        axis = self._tried.axis
        if low < 0 or self._verified:
            return axis.count - 1
        return self._times_beyond(low, LARGEST_JUMP)

    def _times_beyond(self, low: int, factor: float) -> int:
        """Return the largest position whose load is at most so many times that of `low`."""
        axis = self._tried.axis
        limit = axis.load(axis.value(low)) * factor
        first, last = low + 1, axis.count - 1
        while first < last:
            middle = (first + last + 1) // 2
            inside = axis.load(axis.value(middle)) <= limit
            first, last = (middle, last) if inside else (first, middle - 1)
        return max(first, min(axis.count - 1, low + 1))

    def _second(self, low: int, high: int, cap: Cap | None) -> int:
        """Return the position after the first: the further the more room the first has left."""
        points = self._tried.points()
        factor = 4.0
        if cap is not None and points and points[-1][1] > 0:
            factor = min(max(1 + 4 * (cap.bytes / points[-1][1] - 1), 2.0), LARGEST_JUMP)
        return min(self._times_beyond(low, factor), high - 1)

    def _halved(self, low: int, high: int) -> list[int]:
        """Return what halves the bracket, or gallops up where nothing has failed yet."""
        if high == self._tried.axis.count and low >= 0:
            before = max((one for one in self._tried.fits if one < low), default=low - 1)
            return [min(low + 2 * (low - before), self._reach(low))]
        parts = min(self._known.width, high - low - 1) + 1
        found = {low + (high - low) * (k + 1) // parts for k in range(parts - 1)}
        return sorted(one for one in found if low < one < high)

    def _around(self, low: int, high: int, wanted: list[int]) -> list[int]:
        """Return what to try beside trials that told nothing.

        Lower values first, since those may be what more of the axis meets: the one next to it, or
        after several of them half-way down to what fits.
        """
        tried = self._tried
        lowest = min(one for one in (*tried.untold, high) if one > low)
        if low < 0 and 0 not in tried.untold:
            return [0]
        if self._untold > 1 and max(wanted) >= lowest and lowest - low > 1:
            return [(low + lowest) // 2]
        for away in range(high - low):
            if found := tried.free([wanted[0] - away, wanted[0] + away]):
                return found[:1]
        return []

    def _compare(
        self, position: int, chance: float, foreseen: Forecast, before: tuple[int, int]
    ) -> None:
        """See whether a guided trial came out as foreseen."""
        tried = self._tried
        fits = tried.fits.get(position)
        peak = None if not fits else tried.peak(fits[-1])
        low, high = before
        halved = (tried.high - tried.low) * 2 <= high - low + 1
        if (chance >= 0.5) != bool(fits) and not halved:
            self._misled += 1
        if peak is not None:
            points = [one for one in tried.points() if one[0] < position]
            grown = peak - points[-1][1] if points else peak
            # a peak that stays the same tells nothing of where it will grow
            told = grown > FLAT_SHARE * peak
            self._verified = told and abs(foreseen.at(position) - peak) <= _TOLD_RIGHT * grown
