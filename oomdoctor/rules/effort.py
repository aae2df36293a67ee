"""How many steps a search for a pattern may take at most, as a formula of the text's size."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.rules.pattern_tree import ONE_WIDE, REPEATS, inside, may_cross

if TYPE_CHECKING:
    from oomdoctor.rules.pattern_tree import Argument, Items

_ENDLESS = 256


class NoBoundError(Exception):
    """The steps of a search have no bound that is worth telling."""


class Effort(NamedTuple):
    """At most `factor` * (longest line) ** `by_line` * (whole text) ** `by_text` per start."""

    factor: int
    by_line: int = 0
    by_text: int = 0


def effort(items: Items) -> Effort:
    """Return the steps that one attempt to match takes at most.

    Repeats without an end count where they repeat one character; all else that could explode
    (a repeat of a repeat, a back reference) has no bound.
    """
    ways, asserted = Effort(1), []
    for op, argument in items:
        one = _of_node(str(op), argument)
        both = Effort(*(ways.factor * one.factor, *map(add, ways[1:], one[1:])))
        if str(op) in ("ASSERT", "ASSERT_NOT"):  # its ways to match do not multiply what follows
            asserted.append(both)
        else:
            ways = both
    return reduce(_either, asserted, ways)


def _of_node(op: str, argument: Argument) -> Effort:
    if op in REPEATS:
        return _of_repeat(*argument)
    if op in (*ONE_WIDE, "AT"):
        return Effort(1)
    if op not in ("BRANCH", "SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        raise NoBoundError
    efforts = [effort(branch) for branch in inside(op, argument)]
    # branches of fixed length cost a step each, and together no more ways to go on than one
    total = Effort(0) if any(one == (1, 0, 0) for one in efforts) else efforts.pop()
    for one in efforts:
        total = _either(total, one) if one != (1, 0, 0) else total
    return total._replace(factor=max(1, total.factor))


def _either(one: Effort, other: Effort) -> Effort:
    return Effort(
        one.factor + other.factor,
        max(one.by_line, other.by_line),
        max(one.by_text, other.by_text),
    )


def _of_repeat(low: int, high: int, inner: Argument) -> Effort:
    parts = list(inner)
    if len(parts) == 1 and str(parts[0][0]) in ONE_WIDE:
        if high < _ENDLESS:
            return Effort(high - low + 1)
        crosses = may_cross(str(parts[0][0]), parts[0][1])
        return Effort(1, by_text=1) if crosses else Effort(1, by_line=1)
    if high > 1:
        raise NoBoundError
    one = effort(parts)
    return one._replace(factor=one.factor + 1)
