"""The lengths of all sequences as a histogram, and what follows from it exactly."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REPLACED = 100
"""From this many batches on, drawing rows with or without replacement is the same."""
NEARLY_ALL = 0.99
FAR = 4
"""A length that is so many times that of 99 of 100 sequences stands alone."""


class Bar(NamedTuple):
    """One bar of a histogram: sequences whose tokens are in `low..high`."""

    low: int
    high: int
    number: int


class Lengths:
    """How many sequences have how many tokens."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        """Take the count of each length; lengths without a sequence are left out."""
        self.items = sorted((length, count) for length, count in counts.items() if count > 0)
        self._values = [length for length, _ in self.items]
        self._up_to = list(accumulate(count for _, count in self.items))

    @property
    def count(self) -> int:
        """Return the number of sequences."""
        return self._up_to[-1] if self._up_to else 0

    @property
    def tokens(self) -> int:
        """Return the tokens of all sequences."""
        return sum(length * count for length, count in self.items)

    @property
    def longest(self) -> int:
        """Return the tokens of the longest sequence, 0 where there is none."""
        return self._values[-1] if self._values else 0

    @property
    def shortest(self) -> int:
        """Return the tokens of the shortest sequence, 0 where there is none."""
        return self._values[0] if self._values else 0

    def quantile(self, share: float) -> int:
        """Return the least length that `share` of the sequences do not exceed."""
        if not self.items:
            return 0
        wanted = max(1, -int(-share * self.count // 1))
        return self._values[min(bisect_left(self._up_to, wanted), len(self._values) - 1)]

    def over(self, limit: int) -> tuple[int, int]:
        """Return the sequences longer than `limit`, and the tokens that are cut from them."""
        long = [(length, count) for length, count in self.items if length > limit]
        return sum(count for _, count in long), sum((le - limit) * count for le, count in long)

    def cut_at(self, limit: int) -> Lengths:
        """Return the lengths after all are cut at `limit`."""
        counts: dict[int, int] = {}
        for length, count in self.items:
            kept = min(length, limit)
            counts[kept] = counts.get(kept, 0) + count
        return Lengths(counts)

    def expected_longest(
        self, batch: int, *, padded: Callable[[int], int] = lambda length: length
    ) -> float:
        """Return the mean over random batches of the (padded) length of their longest member."""
        expected = before = 0.0
        for length, at in zip(self._values, self._up_to, strict=True):
            chance = self._all_within(at, batch)
            expected += padded(length) * (chance - before)
            before = chance
        return expected

    def longest_quantile(self, batch: int, share: float) -> int:
        """Return the length that the longest member of `share` of all random batches stays in."""
        for length, at in zip(self._values, self._up_to, strict=True):
            if self._all_within(at, batch) >= share:
                return length
        return self.longest

    def _all_within(self, within: int, batch: int) -> float:
        """Return the chance that a random batch has only members among the `within` shortest."""
        size = min(batch, self.count)
        if self.count >= REPLACED * size:
            return float((within / self.count) ** size)
        if within < size:
            return 0.0
        chance = 1.0
        for drawn in range(size):
            chance *= (within - drawn) / (self.count - drawn)
        return chance

    def sorted_tokens(self, batch: int) -> int:
        """Return the padded tokens of batches that are cut from the rows in order of length."""
        padded = before = 0
        for length, count in reversed(self.items):
            starts = -(-(before + count) // batch) - -(-before // batch)
            padded += starts * batch * length
            before += count
        short = -self.count % batch
        if short and self.items:
            last = (self.count - 1) // batch * batch
            padded -= short * self._descending(last)
        return padded

    def _descending(self, at: int) -> int:
        return self._values[min(bisect_left(self._up_to, self.count - at), len(self._values) - 1)]

    def bars(self, most: int = 20) -> tuple[Bar, ...]:
        """Return a histogram of at most `most` bars of one round width that covers all lengths.

        Where few sequences are far longer than all others, the last bar takes these together.
        """
        if not self.items:
            return ()
        top = self.longest
        if top > FAR * self.quantile(NEARLY_ALL):
            top = FAR * max(self.quantile(NEARLY_ALL), 1)
        width = _round_up(-(-(top + 1) // most))
        last = min(top // width, most - 1)
        counts = dict.fromkeys(range(last + 1), 0)
        for length, count in self.items:
            counts[min(length // width, last)] += count
        ends = {last: max((last + 1) * width - 1, self.longest)}
        bars = [
            Bar(at * width, ends.get(at, (at + 1) * width - 1), count)
            for at, count in counts.items()
        ]
        return tuple(_without_gaps(bars))


def _without_gaps(bars: list[Bar]) -> list[Bar]:
    """Join empty bars that follow each other."""
    joined: list[Bar] = []
    for bar in bars:
        if joined and not (joined[-1].number or bar.number):
            joined[-1] = joined[-1]._replace(high=bar.high)
        else:
            joined.append(bar)
    return joined


def _round_up(width: int) -> int:
    """Return the next power of two."""
    return 1 << (width - 1).bit_length()
