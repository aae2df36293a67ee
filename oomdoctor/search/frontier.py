"""The frontier of two axes: for each value of the outer one, the edge on the inner one.

Memory grows along both, so what fits with more of the outer axis fits with less of it, and what
fails with less fails with more. The middle row is searched first, then those between rows that are
known: each begins with a narrower bracket, and with a curve fitted to all trials so far. A row
whose neighbours end at the same value needs no trial.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from oomdoctor.model.trial import Curve, Frontier
from oomdoctor.record import replace
from oomdoctor.search.axes import QUADRATIC
from oomdoctor.search.edge import HEADROOM, Known, edge_of
from oomdoctor.search.fit import fitted
from oomdoctor.search.rounds import abreast
from oomdoctor.search.tried import Tried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oomdoctor.model.trial import SearchAnswer
    from oomdoctor.search.axes import Axis
    from oomdoctor.search.rounds import Search

    Estimate = Callable[[float], Curve | None]

FEW_VALUES = 8
_MOST_SILENT = 3  # rows of which no trial has told anything, until that is taken to be the rule
ERROR = 0.05
_ERROR_OF_ROWS = 0.02  # of a curve that rows on which memory grows differently have told
_ERROR_OF_ONE = (
    0.15  # of one that a single row has told: how it grows with the outer axis is a guess
)


def find_frontier(
    outer: Axis,
    inner: Axis,
    *,
    outer_values: Sequence[float] | None = None,
    cap_bytes: float | None = None,
    estimate: Estimate | None = None,
    error: float = ERROR,
    headroom: float = HEADROOM,
    width: int = 1,
) -> Search[Frontier]:
    """Search for the edge of each row; the rows known so far when it is stopped.

    `estimate` gives the expected peak along the inner axis at a value of the outer one, with a
    relative error. Without `outer_values` the rows are all values if they are few, else each twice
    the one before.
    """
    values = ladder(outer.check()) if outer_values is None else outer_values
    positions = sorted({outer.position(one) for one in values})
    known = Known(cap_bytes=cap_bytes, error=error, headroom=headroom, width=width)
    rows = _Rows(outer, inner.check(), known, estimate)
    for level in _levels(positions):
        waiting = list(level)
        while waiting:
            now, waiting = waiting[: max(1, width)], waiting[max(1, width) :]
            yield from rows.search(now)
            if rows.halted or rows.silent:
                return rows.frontier()
    return rows.frontier()


def ladder(axis: Axis) -> list[float]:
    """Return values of an axis: all if they are few, else each twice the one before."""
    if axis.count <= FEW_VALUES:
        return sorted(axis.value(one) for one in range(axis.count))
    values = sorted((axis.value(0), axis.value(axis.count - 1)))
    found = [values[0]]
    while True:
        following = max(2 * found[-1], found[-1] + axis.step)
        steps = round((following - axis.first) / axis.step)
        following = axis.first + steps * axis.step
        if following >= values[1]:
            return [*found, values[1]]
        found.append(axis.value(axis.position(following)))


def _levels(positions: Sequence[int]) -> Iterator[list[int]]:
    """Yield the middle, then the middles of both halves, and so on."""
    spans = [list(positions)]
    while spans:
        yield [span[len(span) // 2] for span in spans]
        halves = [h for s in spans for h in (s[: len(s) // 2], s[len(s) // 2 + 1 :])]
        spans = [one for one in halves if one]


class _Rows:
    """The rows of a frontier, and what each tells of the others."""

    def __init__(self, outer: Axis, inner: Axis, known: Known, estimate: Estimate | None) -> None:
        self._outer = outer
        self._inner = inner
        self._known = known
        self._estimate = estimate
        self._tried: dict[int, Tried] = {}
        self._answers: dict[int, SearchAnswer] = {}
        self._order: list[int] = []

    @property
    def halted(self) -> str | None:
        """Return why no further trial may be run."""
        return next((one.halted for one in self._tried.values() if one.halted), None)

    @property
    def silent(self) -> bool:
        """Say whether some rows have been searched, and no trial of any has told anything."""
        told = any(one.fits or one.failed for one in self._tried.values())
        return len(self._answers) >= _MOST_SILENT and not told

    def search(self, positions: Sequence[int]) -> Search[None]:
        """Search rows side by side, each from what the rows before have told."""
        told = {position: self._told(position) for position in positions}
        self._order += positions
        for position in positions:
            self._tried[position] = self._begun(position)
        width = max(1, self._known.width // len(positions))
        answers = yield from abreast(
            [
                edge_of(self._tried[position], replace(told[position], width=width))
                for position in positions
            ]
        )
        self._answers.update(zip(positions, answers, strict=True))

    def frontier(self) -> Frontier:
        """Return the rows that were searched, the lowest outer value first."""
        rows = sorted((float(self._outer.value(p)), one) for p, one in self._answers.items())
        return Frontier(
            outer=self._outer.name,
            inner=self._inner.name,
            rows=tuple(rows),
            trials=tuple(one for p in self._order for one in self._tried[p].trials),
            stopped=self.halted or self._why_silent(),
        )

    def _why_silent(self) -> str | None:
        if not self.silent:
            return None
        return next((one.stopped for one in self._answers.values() if one.stopped), None)

    def _begun(self, position: int) -> Tried:
        """Return a row with what other rows imply for it."""
        row = Tried(self._inner)
        for other, tried in self._tried.items():
            if other > position and tried.low >= 0:
                row.imply(fits={tried.low: tried.times(tried.low)})
            if other < position and tried.high < self._inner.count:
                row.imply(fails=tried.high)
        return row

    def _told(self, position: int) -> Known:
        """Return what a row's search begins with: the cap that was seen, a curve, and its error."""
        known = self._known
        value = self._outer.value(position)
        caps = [one.cap(known.cap_bytes) for one in self._tried.values()]
        seen = [one.bytes for one in caps if one is not None]
        curve = None if self._estimate is None else self._estimate(value)
        error = known.error
        rows = [p for p, one in self._tried.items() if one.points()]
        if len(rows) > 1 or (rows and curve is None):
            error = _ERROR_OF_ROWS if len(rows) > 1 else _ERROR_OF_ONE
            curve = self._curve(position) or curve
        return replace(
            known,
            cap_bytes=seen[-1] if seen else known.cap_bytes,
            estimate=curve,
            error=error,
            fixed={self._outer.name: value},
        )

    def _curve(self, position: int) -> Curve | None:
        """Fit the peak on both axes to all trials, and cut it at a row."""
        powers = sorted(
            product(range(_degree(self._outer) + 1), range(_degree(self._inner) + 1)),
            key=lambda one: (one != (0, 0), one[0] != one[1], -one[1], one[0]),
        )
        outer, inner = self._outer, self._inner
        points = [(p, n, peak) for p, one in self._tried.items() for n, peak in one.points()]
        fit = fitted(
            [
                tuple(
                    outer.load(outer.at(p)) ** i * inner.load(inner.at(n)) ** j for i, j in powers
                )
                for p, n, _ in points
            ],
            [peak for _, _, peak in points],
        )
        if fit is None:
            return None
        here = outer.load(outer.at(position))
        by_power = [0.0, 0.0, 0.0]
        for (i, j), one in zip(powers, fit.coefficients, strict=True):
            by_power[j] += one * here**i
        constant, linear, square = by_power
        return Curve(
            axis=inner.name,
            quantity="reserved",
            constant=constant,
            linear=linear if inner.rising else 0.0,
            quadratic=square,
            inverse=0.0 if inner.rising else linear * inner.at(0),
            residual_bytes=round(fit.residual),
        )


def _degree(axis: Axis) -> int:
    return 2 if axis.growth == QUADRATIC and axis.rising else 1
