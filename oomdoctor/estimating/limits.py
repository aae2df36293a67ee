"""The largest batch and length on a card, and what one row or 1,000 tokens more take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.estimating.shapes import LONGEST, Shape, longest, shape_of
from oomdoctor.estimating.verdicts import word_for
from oomdoctor.model.estimate import FITS, Limit, Rates
from oomdoctor.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.estimating.engine import Engine
    from oomdoctor.memory.outside import Outside
    from oomdoctor.model.job import CardSpec, Job

MOST_ROWS = 1 << 14
STEP = 64
"""Lengths are told in whole multiples of it."""
THOUSAND = 1000


def limits(
    engine: Engine, job: Job, cards: Sequence[CardSpec], beside: Outside, slopes: Rates
) -> tuple[Limit, ...]:
    """Return the largest batch and, where rows have a length, the largest length on each card.

    `slopes` tell where to begin to look, since the peak grows about evenly.
    """
    base = shape_of(job)
    found: list[Limit] = []
    for card in cards:
        own = engine.on(card)

        def fits(shape: Shape, card: CardSpec = card, own: Engine = own) -> bool:
            return word_for(own.at(job, shape), card.total_bytes, beside) == FITS

        here = own.at(job, base)
        left = (card.total_bytes - beside.on(card.total_bytes).high) / (1 + here.up) - here.needed
        guess = base.rows + int(left // max(slopes.row_bytes, 1))
        rows = largest(lambda rows: fits(Shape(rows, base.length)), start=guess, most=MOST_ROWS)
        found.append(Limit(card=card.name, what="batch", largest=rows, capped=rows >= MOST_ROWS))
        if base.length is None:
            continue
        most = min(longest(job), LONGEST) // STEP
        each = max((slopes.thousand_tokens_bytes or 0) * STEP // THOUSAND, 1) * base.rows
        guess = base.length // STEP + int(left // each)
        steps = largest(lambda one: fits(Shape(base.rows, one * STEP)), start=guess, most=most)
        found.append(
            Limit(card=card.name, what="length", largest=steps * STEP, capped=steps >= most)
        )
    return tuple(found)


def largest(fits: Callable[[int], bool], *, start: int, most: int) -> int:
    """Return the largest number from 1 to `most` that fits, 0 where none does.

    It is looked for from `start` on, in ever larger steps. What is smaller than something that fits
    is taken to fit as well.
    """
    start = min(max(start, 1), most)
    step = 1
    if fits(start):
        low = high = start
        while high == low and low < most:
            high = min(low + step, most)
            if fits(high):
                low = high
            step *= 2
    else:
        low, high = start, start
        while low == high and low:
            low = max(high - step, 0)
            if low and not fits(low):
                high = low
            step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def rates(engine: Engine, job: Job) -> Rates:
    """Return what one row more, and 1,000 tokens more, add to the allocated peak."""
    base = shape_of(job)
    here = engine.at(job, base).allocated
    wider = engine.at(job, Shape(base.rows + 1, base.length)).allocated
    how = "one row more"
    thousand = None
    if base.length is not None:
        longer = engine.at(job, Shape(base.rows, base.length + THOUSAND)).allocated
        thousand = (longer - here) // base.rows
        how = (
            f"one row of {format_count(base.length)} tokens more,"
            f" and 1,000 tokens more from {format_count(base.length)} on"
        )
    return Rates(row_bytes=wider - here, thousand_tokens_bytes=thousand, how=how)
