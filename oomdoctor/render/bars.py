"""Draw shares of a whole as one bar of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.render.layout import Line, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

# one fill per owner, told apart by shape and not by colour alone
FILLS = {
    "allocated": ("█", "#"),
    "reserved_unallocated": ("▓", "="),
    "outside_allocator": ("▒", "o"),
    "other_processes": ("▚", "+"),
    "free": ("░", "."),
}
OTHERS = (("▤", "%"), ("▥", "~"), ("▦", "*"), ("▧", "^"))


class Share(NamedTuple):
    """One part of the bar: its size, the character it is drawn with, and its style."""

    size: int
    fill: str
    style: str


def fill_of(owner: str, order: int, *, unicode: bool) -> str:
    """Return the character for an owner; those without one of their own go by `order`."""
    pair = FILLS.get(owner.replace(" ", "_"), OTHERS[order % len(OTHERS)])
    return pair[0] if unicode else pair[1]


def bar(shares: Sequence[Share], *, whole: int, width: int) -> Line:
    """Draw `shares` of `whole` in `width` characters; whatever is not zero gets at least one."""
    total = max(whole, sum(share.size for share in shares), 1)
    counts = _counts([share.size for share in shares], total=total, width=width)
    spans = [Span(s.fill * n, s.style) for s, n in zip(shares, counts, strict=True) if n]
    rest = width - sum(counts)
    return (*spans, Span(" " * rest)) if rest > 0 else tuple(spans)


def _counts(sizes: Sequence[int], *, total: int, width: int) -> list[int]:
    """Share `width` cells out by largest remainder."""
    exact = [max(size, 0) * width / total for size in sizes]
    counts = [max(int(value), 1 if value > 0 else 0) for value in exact]
    goal = min(round(sum(exact)), width)
    by_rest = sorted(range(len(sizes)), key=lambda at: exact[at] - counts[at], reverse=True)
    for at in by_rest[: max(goal - sum(counts), 0)]:
        counts[at] += 1
    while sum(counts) > width and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    return counts
