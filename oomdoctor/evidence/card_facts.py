"""Facts of a device tool's table: the fullest card, its processes, and how cards differ."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import (
    MIB,
    bytes_fact,
    derived,
    first_of_each,
    flag,
    stated,
)
from oomdoctor.evidence.cards import fullest
from oomdoctor.evidence.moment import at_failure, failure_index
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.cards import Card, ProcessRow, Table
    from oomdoctor.model.core import Document, Fact, Quote

SMALL_LOW = 200 * MIB
SMALL_HIGH = 1024 * MIB
"""A CUDA context with its libraries takes 0.2 to 1 GiB; more is work of its own."""
MODES = {
    "default": "default",
    "e. process": "exclusive-process",
    "e. thread": "exclusive-process",
    "exclusive_process": "exclusive-process",
    "exclusive_thread": "exclusive-process",
    "exclusive process": "exclusive-process",
    "prohibited": "prohibited",
}


def reading_of(document: Document, tables: Sequence[Table]) -> Reading:
    """Return the facts of the snapshot that belongs to the failure (the last one before it)."""
    chosen = at_failure(
        [table for table in tables if table.speaks],
        order=lambda table: table.order,
        failure=failure_index(document),
    )
    if chosen is None:
        return Reading()
    closes = ("process-table",) if chosen.processes_shown else ()
    return Reading(facts=cards_facts(chosen), closes=closes)


def cards_facts(table: Table) -> tuple[Fact, ...]:
    """Return all facts of one table."""
    cards = tuple(card for card in table.cards if card.sound)
    chosen = fullest(cards)
    facts = [*_head_facts(table)]
    if chosen is not None:
        facts.extend(_card_facts(chosen))
    facts.extend(_comparing_facts(cards, whole=table.whole))
    facts.extend(_process_facts(table, chosen))
    return first_of_each(facts)


def _head_facts(table: Table) -> Iterator[Fact]:
    if table.driver is not None:
        yield stated("gpu.driver", *table.driver)
    if table.cuda is not None:
        yield stated("gpu.cuda", *table.cuda)
    if table.wddm is not None:
        yield flag("gpu.wddm", table.wddm)


def _card_facts(card: Card) -> Iterator[Fact]:
    device = fullest([part for part in card.slices if part.sound]) or card
    if card.name and card.name_quote is not None:
        yield stated("gpu.name", card.name, card.name_quote)
    if card.total is not None:
        yield bytes_fact("gpu.total", card.total)
    yield from _usage_facts(device)
    mode = MODES.get((card.compute_mode or "").lower())
    if mode is not None and card.mode_quote is not None:
        yield stated("gpu.compute_mode", mode, card.mode_quote)
    if device is not card and device.total is not None:
        yield flag("gpu.mig", device.total.quote)
        yield bytes_fact("gpu.mig_slice", device.total)
    elif card.mig is not None and card.mig_quote is not None:
        yield flag("gpu.mig", card.mig_quote, value=card.mig)


def _usage_facts(device: Card) -> Iterator[Fact]:
    """Yield used, free and the used share; used is total - free only where no used is printed.

    Newer drivers count `reserved` apart: total - used overstates what is free.
    """
    total, used, free = device.total, device.used, device.free
    if used is not None:
        yield bytes_fact("gpu.used", used)
    elif total is not None and free is not None:
        yield derived(
            "gpu.used",
            total.bytes - free.bytes,
            total.quote,
            free.quote,
            source="total - free of one table",
            slack=total.slack_bytes + free.slack_bytes,
        )
    if free is not None:
        yield bytes_fact("gpu.free", free)
    elif total is not None and used is not None:
        yield derived(
            "gpu.free",
            total.bytes - used.bytes,
            total.quote,
            source="total - used of one table",
            slack=total.slack_bytes + used.slack_bytes,
        )
    share = device.used_share
    if share is not None and used is not None:
        yield derived("gpu.used_share", round(share, 4), used.quote, source="used / total")


def _comparing_facts(cards: Sequence[Card], *, whole: bool) -> Iterator[Fact]:
    named = [card for card in cards if card.index is not None]
    lines = [line for line in map(_card_line, named) if line is not None]
    if lines:
        quotes = [card.used.quote for card in named if card.used is not None and _card_line(card)]
        yield stated("gpu.cards", "\n".join(lines), *quotes)
    quotes = [quote for quote in map(_place, named) if quote is not None]
    if whole and quotes:
        yield derived("gpu.count", len(named), *quotes, source="rows of the table")
    shares = [(card.used_share, card) for card in named if card.used_share is not None]
    if len(shares) > 1:
        high = max(shares, key=lambda pair: pair[0])
        low = min(shares, key=lambda pair: pair[0])
        quotes = [pair[1].used.quote for pair in (high, low) if pair[1].used is not None]
        source = "used share of the fullest card - that of the emptiest"
        yield derived("gpu.imbalance", round(high[0] - low[0], 4), *quotes, source=source)


def _place(card: Card) -> Quote | None:
    said = card.used or card.total or card.free
    return card.name_quote or (None if said is None else said.quote)


def _card_line(card: Card) -> str | None:
    if card.used is None or card.total is None:
        return None
    return f"{card.index}: {card.name or 'card'}, {card.used.bytes} of {card.total.bytes} bytes"


def _process_facts(table: Table, chosen: Card | None) -> Iterator[Fact]:
    if table.rows:
        yield flag("gpu.process_table_empty", table.rows[0].quote, value=False)
    elif table.empty is not None:
        yield flag("gpu.process_table_empty", table.empty)
        yield stated("gpu.process_rows", 0, table.empty)
        return
    else:
        return
    index = chosen.index if chosen is not None and chosen.index is not None else None
    rows = _rows_of(table.rows, index)
    yield stated("gpu.process_rows", len(rows), *(row.quote for row in rows))
    sized = [row for row in rows if row.memory is not None]
    largest = max(sized, key=_bytes, default=None)
    if largest is not None and largest.memory is not None:
        yield bytes_fact("gpu.largest_row", largest.memory)
    named = [row for row in table.rows if row.name]
    if named:
        names = "\n".join(row.name for row in named)
        yield stated("gpu.programs", names, *(row.quote for row in named))
    lost = [row for row in table.rows if "not found" in row.name.lower()]
    yield stated("gpu.not_found_rows", len(lost), *(row.quote for row in lost))
    yield from _group_facts(table.rows)


def _rows_of(rows: Sequence[ProcessRow], index: str | None) -> list[ProcessRow]:
    """Return the rows of a card; without one, those of the card with the most bytes in rows."""
    if index is None:
        sums: Counter[str] = Counter()
        for row in rows:
            sums[row.card] += _bytes(row) + 1
        index = sums.most_common(1)[0][0]
    return [row for row in rows if row.card == index]


def _group_facts(rows: Sequence[ProcessRow]) -> Iterator[Fact]:
    """Yield how often one program stands on one card, and how many of these rows are contexts."""
    working = [row for row in rows if row.kind != "G"]
    groups: dict[tuple[str, str], list[ProcessRow]] = {}
    for row in working:
        groups.setdefault((row.card, row.name), []).append(row)
    if not groups:
        return
    most = max(groups.values(), key=len)
    yield stated("gpu.same_program_rows", len(most), *(row.quote for row in most))
    if any(row.memory is None for row in working):
        return
    small = {key: _small(group) for key, group in groups.items()}
    contexts = max(small.values(), key=len)
    quotes = tuple(row.quote for row in contexts)
    yield stated("gpu.small_rows", len(contexts), *quotes)
    if not contexts:
        return
    total = sum(_bytes(row) for row in contexts)
    yield stated("gpu.small_rows_bytes", total, *quotes, slack=len(contexts) * MIB // 2)
    holders = {card for (card, _), group in small.items() if group}
    yield flag("gpu.small_rows_only_gpu0", *quotes, value=holders == {"0"})


def _small(rows: Sequence[ProcessRow]) -> list[ProcessRow]:
    return [row for row in rows if SMALL_LOW <= _bytes(row) <= SMALL_HIGH]


def _bytes(row: ProcessRow) -> int:
    return 0 if row.memory is None else row.memory.bytes
