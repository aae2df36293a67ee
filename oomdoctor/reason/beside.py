"""Notes on what lies beside the failure: a table of another card, a kill in another input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Failure, Quote

SAME_SHARE = 0.12
"""Tools and allocators count a card's memory differently, never by more than this."""
_WORDS = {
    "gpu-oom": "that device memory ran out",
    "host-oom": "a process that was killed for host memory",
}


def notes(book: FactBook, failures: Sequence[Failure], event: Failure | None) -> Iterator[str]:
    """Yield what a reader should know before he trusts that all inputs are of one failure."""
    yield from _other_card(book)
    yield from _other_end(failures, event)


def _other_card(book: FactBook) -> Iterator[str]:
    """Say where no card of the device tool's table has the size that the message states."""
    capacity, total = book.facts.get("oom.capacity"), book.facts.get("gpu.total")
    if capacity is None or total is None or not (capacity.quotes and total.quotes):
        return
    if book.value("gpu.mig") or capacity.quotes[0].artifact == total.quotes[0].artifact:
        return
    stated = book.value("oom.capacity")
    if not isinstance(stated, int) or any(_same(one, stated) for one in _totals(book)):
        return
    yield (
        f"the table ({_place(total.quotes[0])}) shows no card of {format_size(stated)}, which the"
        f" message ({_place(capacity.quotes[0])}) states: it may be of another machine or moment"
    )


def _totals(book: FactBook) -> list[int]:
    listed = re.findall(r"of (\d+) bytes", str(book.value("gpu.cards") or ""))
    total = book.value("gpu.total")
    return [*map(int, listed), *([total] if isinstance(total, int) else [])]


def _same(one: int, other: int) -> bool:
    return abs(one - other) <= SAME_SHARE * max(one, other)


def _other_end(failures: Sequence[Failure], event: Failure | None) -> Iterator[str]:
    """Say where another input tells that the other memory ran out, the host's or the device's."""
    if event is None or event.kind not in _WORDS:
        return
    for failure in failures:
        elsewhere = failure.line_quote.artifact != event.line_quote.artifact
        if elsewhere and failure.kind in _WORDS and failure.kind != event.kind:
            yield (
                f"{_place(failure.line_quote)} reports {_WORDS[failure.kind]} as well:"
                " see which of the two came first"
            )
            return


def _place(quote: Quote) -> str:
    return f"{quote.artifact}:{quote.line}"
