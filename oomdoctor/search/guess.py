"""Which position to try next, where the edge is expected with some error.

The edge is the largest position that fits. A trial just above it costs as much as one on it: the
first fails and is the upper end of the bracket, the second fits and is the lower. So where the edge
is known to one position, the one is tried that is the edge or next to it with the highest chance;
where it is not, one that fits rather than fails, since only a fit shows a peak.
"""

from __future__ import annotations

import math

LANDING = 0.6
"""Chance of trying the edge or its neighbour from which on that is tried."""
CHANCE_OF_A_FIT = 0.7
_PARTS = ((0.8, 1.0, 0.0), (0.14, 3.0, 0.2), (0.06, 9.0, 1.0))
"""Weight, times the error, and times the surprise of the three normal distributions that are mixed:
mostly the expectation is right, at times what it rests on is not, and then far off."""


class Chances:
    """Where the edge is: around a position, with a long tail, and within a bracket.

    `low` fits or is -1, `high` fails or is one past the end; the edge is one of low..high-1.
    `surprise` is how far off it may be where the cap or the curve is another than was thought. A
    bracket that contradicts the expectation leaves the tail alone, so that no step is wasted on it.
    """

    def __init__(self, edge: float, error: float, surprise: float, low: int, high: int) -> None:
        """Take an expectation, and what is already known."""
        self.low, self.high = low, high
        self._edge = edge
        self._parts = [
            (weight, max(times * error, share * surprise, 1e-6)) for weight, times, share in _PARTS
        ]
        self._below = self._cumulated(low)
        self._mass = self._cumulated(high) - self._below

    def fits(self, position: int) -> float:
        """Return the chance that a position fits."""
        if self._mass < 1e-12:
            return 1.0 if position <= self._edge else 0.0
        return (self._cumulated(self.high) - self._cumulated(position)) / self._mass

    def lands(self, position: int) -> float:
        """Return the chance that a position is the edge, or the one above it."""
        lower = self.fits(max(position - 1, self.low))
        return lower - (self.fits(position + 1) if position + 1 < self.high else 0.0)

    def best(self, chance_of_a_fit: float = CHANCE_OF_A_FIT) -> int:
        """Return the position to try next, strictly within the bracket."""
        near = min(max(math.floor(self._edge + 0.5), self.low + 1), self.high - 1)
        if self._mass < 1e-12 or self.lands(near) >= LANDING:
            return near
        return self.likely(chance_of_a_fit)

    def likely(self, chance: float) -> int:
        """Return the largest position that fits with at least a chance, or the lowest there is."""
        low, high = self.low + 1, self.high - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(middle) >= chance else (low, middle - 1)
        return low

    def _cumulated(self, position: float) -> float:
        away = (self._edge - position) / math.sqrt(2)
        return sum(weight * 0.5 * math.erfc(away / error) for weight, error in self._parts)
