"""A recognised event with the lines it covers, and the short constructors that readers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact, Failure, Quote
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.model.core import Document, LogLine, Value

ABSURD_BYTES = 2**46
"""64 TiB: no device holds it; sizes near 2^47 B, 2^34 GiB and 1 EB are broken numbers."""

QUOTE_CHARS = 600
MOST_QUOTES = 8


class Event(NamedTuple):
    """A failure, and the first and last line index of the document that speak of it.

    Events of one `family` that follow each other within `reach` lines tell of one failure.
    """

    failure: Failure
    first: int
    last: int
    family: str = ""
    reach: int = 12


def fact(key: str, value: Value, quotes: Iterable[Quote] = (), *, slack: float = 0) -> Fact:
    """Return a stated fact."""
    return Fact(key=key, value=value, slack=slack, quotes=tuple(quotes))


def part_quote(document: Document, line: LogLine, start: int, end: int) -> Quote:
    """Quote `start:end` of a line's cleaned text, at its own place where the words stand twice."""
    base = line.raw.find(line.text)
    if base < 0 or start >= min(end, len(line.text)):
        return document.quote(line, start, end)
    text = line.text[start:end]
    column = base + start + 1
    return Quote(
        artifact=document.artifact.id,
        line=line.number,
        text=text,
        column=column,
        end_column=column + len(text),
    )


def line_quote(document: Document, line: LogLine, *, column: int = 0) -> Quote:
    """Quote a line; of a very long one the part from a little before `column` on."""
    if len(line.text) <= QUOTE_CHARS:
        return document.quote(line)
    start = max(0, column - QUOTE_CHARS // 4)
    return part_quote(document, line, start, start + QUOTE_CHARS)


def absurd_fact(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Say whether the requested size can be meant at all, where it is stated."""
    return tuple(
        fact("oom.absurd_size", one.value >= ABSURD_BYTES, one.quotes)
        for one in facts
        if one.key == "oom.requested" and isinstance(one.value, int)
    )


def merged(events: Iterable[Event]) -> list[Event]:
    """Fold events of one family and writer that stand close together into the first of them."""
    folded: list[Event] = []
    newest: dict[tuple[str, int | None], int] = {}
    for event in sorted(events, key=lambda one: (one.first, one.last)):
        key = (event.family, event.failure.rank)
        at = newest.get(key) if event.family else None
        if at is not None and event.first - folded[at].last <= event.reach:
            folded[at] = absorb(folded[at], event)
            continue
        newest[key] = len(folded)
        folded.append(event)
    return folded


def absorb(head: Event, tail: Event) -> Event:
    """Return `head` with what `tail` adds: facts it lacks, and finer figures that agree."""
    facts = {one.key: one for one in head.failure.facts}
    for one in tail.failure.facts:
        held = facts.get(one.key)
        if held is None or _finer(one, held) or _says_more(one, held):
            facts[one.key] = one
        elif held.value is True and one.value is True:
            facts[one.key] = replace(held, quotes=_united(held.quotes, one.quotes))
    failure = replace(head.failure, facts=tuple(facts.values()))
    return head._replace(failure=failure, last=max(head.last, tail.last))


def _united(first: tuple[Quote, ...], more: tuple[Quote, ...]) -> tuple[Quote, ...]:
    """Return the places of both, so that a statement repeated on other lines quotes them too."""
    return tuple(dict.fromkeys((*first, *more)))[:MOST_QUOTES]


def _finer(new: Fact, held: Fact) -> bool:
    if isinstance(new.value, str) or isinstance(held.value, str) or new.slack >= held.slack:
        return False
    return abs(new.value - held.value) <= new.slack + held.slack


def _says_more(new: Fact, held: Fact) -> bool:
    """A later line that gives the figures makes up for an earlier one that did not."""
    return new.key == "oom.figures_given" and new.value is True and held.value is False
