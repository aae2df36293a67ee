"""Amounts of memory with the place that states them, and short constructors for facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import dataclass
from oomdoctor.units import size_of, unit_bytes

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from oomdoctor.model.core import Document, LogLine, Quote, Value

MIB = 1 << 20
MAX_TABLE_LINE = 500
"""Lines of tables are under 200 characters; longer ones are something else and cost time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Bytes with the half width of their rounding and the text that says so."""

    bytes: int
    slack_bytes: int
    quote: Quote


def amount(document: Document, line: LogLine, found: re.Match[str], *, group: str) -> Amount | None:
    """Return the MiB figure of a group of `found`, a match in `line.text`."""
    return amount_in(document, line, found, group=group, unit="MiB")


def amount_in(
    document: Document, line: LogLine, found: re.Match[str], *, group: str, unit: str
) -> Amount | None:
    """Return the figure of a group of `found` counted in `unit`; None where it has no figure."""
    digits, scale = found[group], unit_bytes(unit)
    if digits is None or scale is None:
        return None
    size = size_of(digits, scale)
    quote = document.quote(line, found.start(), found.end())
    return Amount(bytes=size.bytes, slack_bytes=size.slack_bytes, quote=quote)


def bytes_fact(key: str, said: Amount) -> Fact:
    """Return the stated fact of an amount."""
    return Fact(key=key, value=said.bytes, slack=said.slack_bytes, quotes=(said.quote,))


def stated(key: str, value: Value, *quotes: Quote, slack: float = 0) -> Fact:
    """Return a fact that the quotes state."""
    return Fact(key=key, value=value, slack=slack, quotes=quotes)


def flag(key: str, *quotes: Quote, value: bool = True) -> Fact:
    """Return a yes-or-no fact that the quotes state."""
    return Fact(key=key, value=value, quotes=quotes)


def derived(key: str, value: Value, *quotes: Quote, source: str, slack: float = 0) -> Fact:
    """Return a fact that follows from what the quotes state, as `source` says."""
    return Fact(
        key=key, value=value, origin=Origin.DERIVED, slack=slack, quotes=quotes, source=source
    )


def first_of_each(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts without later ones of the same key."""
    kept: dict[str, Fact] = {}
    for fact in facts:
        kept.setdefault(fact.key, fact)
    return tuple(kept.values())
