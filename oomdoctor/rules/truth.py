"""Kleene's three-valued logic over verdicts, which say what they miss and what decided them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Verdict
from oomdoctor.model.enums import Truth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.model.core import Quote

_OPPOSITE = {
    Truth.TRUE: Truth.FALSE,
    Truth.FALSE: Truth.TRUE,
    Truth.UNKNOWN: Truth.UNKNOWN,
}


def truth_of(value: object) -> Truth:
    """Return TRUE or FALSE for a Python truth value."""
    return Truth.TRUE if value else Truth.FALSE


def negate(verdict: Verdict) -> Verdict:
    """Return the opposite verdict, for the same reasons."""
    return Verdict(
        truth=_OPPOSITE[verdict.truth],
        read=verdict.read,
        missing=verdict.missing,
        quotes=verdict.quotes,
    )


def combine(verdicts: Sequence[Verdict], *, absorbing: Truth) -> Verdict:
    """Join verdicts: FALSE absorbs in a conjunction, TRUE in a disjunction.

    An absorbed verdict quotes the parts that absorbed; an unknown one unites what they miss.
    """
    read = frozenset().union(*(verdict.read for verdict in verdicts))
    decisive = [verdict for verdict in verdicts if verdict.truth is absorbing]
    if decisive:
        return Verdict(truth=absorbing, read=read, quotes=united_quotes(decisive))
    unknown = [verdict for verdict in verdicts if verdict.truth is Truth.UNKNOWN]
    if unknown:
        missing = frozenset().union(*(verdict.missing for verdict in unknown))
        return Verdict(
            truth=Truth.UNKNOWN, read=read, missing=missing, quotes=united_quotes(verdicts)
        )
    return Verdict(truth=_OPPOSITE[absorbing], read=read, quotes=united_quotes(verdicts))


def united_quotes(verdicts: Iterable[Verdict]) -> tuple[Quote, ...]:
    """Return the quotes of all verdicts, each once, in order."""
    return tuple(dict.fromkeys(quote for verdict in verdicts for quote in verdict.quotes))
