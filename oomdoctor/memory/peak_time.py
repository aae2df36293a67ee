"""The peak as the highest point over a step's time, in the place of the sum of its parts.

Gradients grow while activations shrink, and states are not there in the first backward pass, so
that the parts are never all there at once. Only where the sum is known, and only downwards: the
tape of the formulas may know less than the parts do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

KEY, CONTEXT = "peak.formula", "part.context"


def timed(book: FactBook) -> FactBook:
    """Return the book with the highest point over time where that is below the sum."""
    held, context = book.get(KEY), book.value(CONTEXT)
    if held is None or held.source is None or not isinstance(held.value, int):
        return book
    if not isinstance(context, int) or not held.value:
        return book
    from oomdoctor.memory.formula import peak_by_formula
    from oomdoctor.memory.jobs import job_of_completed

    job = job_of_completed(book).job
    if job is None:
        return book
    try:
        highest = peak_by_formula(job).peak_bytes + context
    except (ValueError, ZeroDivisionError):
        return book
    if highest >= held.value:
        return book
    slack = held.slack * highest / held.value
    words = "highest point of a step over its time, and the context"
    fact = replace(held, value=int(highest), slack=slack, source=words)
    return book.without((KEY,)).add((fact,))
