"""Snapshots of cards that a tool prints figure by figure, as AMD's tools do.

A figure of a card that comes again starts the next snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from oomdoctor.evidence.cards import Card, ProcessRow, Table
from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.evidence.amounts import Amount
    from oomdoctor.model.core import Document, Quote

What: TypeAlias = Literal["total", "used", "free"]


@dataclass(slots=True, kw_only=True)
class Snapshots:
    """Collects cards and rows; `order` is the index of the first line of the current snapshot."""

    document: Document
    done: list[Table] = field(default_factory=list)
    order: int | None = None
    cards: dict[str, Card] = field(default_factory=dict)
    rows: list[ProcessRow] = field(default_factory=list)
    empty: Quote | None = None

    def close(self) -> None:
        """Finish the current snapshot."""
        if self.order is not None:
            self.done.append(
                Table(
                    order=self.order,
                    cards=tuple(self.cards.values()),
                    rows=tuple(self.rows),
                    empty=self.empty,
                    processes_shown=bool(self.rows) or self.empty is not None,
                    whole=bool(self.cards),
                )
            )
        self.order, self.cards, self.rows, self.empty = None, {}, [], None

    def begin(self, index: int) -> None:
        """Note that the snapshot speaks in this line."""
        self.order = index if self.order is None else self.order

    def take(self, index: int, number: str, what: What, said: Amount) -> None:
        """Store a figure of a card."""
        if getattr(self.cards.get(number), what, None) is not None:
            self.close()
        self.begin(index)
        card = self.cards.get(number, Card(index=number))
        changes: dict[str, Any] = {what: said}
        self.cards[number] = replace(card, **changes)

    def take_name(self, index: int, number: str, name: str, quote: Quote) -> None:
        """Store a card's name."""
        self.begin(index)
        card = self.cards.get(number, Card(index=number))
        self.cards[number] = replace(card, name=name, name_quote=quote)

    def take_row(self, index: int, row: ProcessRow) -> None:
        """Store a process."""
        self.begin(index)
        self.rows.append(row)
