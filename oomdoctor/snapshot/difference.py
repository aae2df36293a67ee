"""What one moment holds more or less than another: by line, or by category."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.leaks import Site


class Change(NamedTuple):
    """What a line of some category held before and after."""

    site: Site
    category: str
    before_bytes: int
    after_bytes: int
    before_blocks: int
    after_blocks: int

    @property
    def more_bytes(self) -> int:
        """Return the bytes that it holds more, below zero where less."""
        return self.after_bytes - self.before_bytes


def changes_between(before: Balance, after: Balance) -> tuple[Change, ...]:
    """Return all lines that hold more or less, the largest change first.

    Lines are the same where file, line and function are: an edit that moves a line shows as one
    that went and one that came.
    """
    sizes: Counter[tuple[Site, str, int]] = Counter()
    counts: Counter[tuple[Site, str, int]] = Counter()
    for when, balance in enumerate((before, after)):
        for one in balance.sites:
            sizes[one.site, one.category, when] += one.held_bytes
            counts[one.site, one.category, when] += one.blocks
    found = []
    for site, category in dict.fromkeys((site, category) for site, category, _ in sizes):
        sides = [(site, category, when) for when in (0, 1)]
        change = Change(
            site, category, *(sizes[side] for side in sides), *(counts[side] for side in sides)
        )
        if change.more_bytes or change.before_blocks != change.after_blocks:
            found.append(change)
    return tuple(sorted(found, key=lambda one: -abs(one.more_bytes)))
