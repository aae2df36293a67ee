"""What a device tool shows at one moment: cards, MIG slices and process rows, tool-independent.

`cards_facts` turns a table into facts. Where several cards are shown the fullest one speaks for
`gpu.name`, `gpu.total` and `gpu.used`; `gpu.cards` keeps all of them, so that the card of the
message (`oom.gpu_index`) can be looked up later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.evidence.amounts import Amount
    from oomdoctor.model.core import Quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card (or MIG slice) with what the tool says of it; `index` is None for a lone row."""

    index: str | None = None
    name: str | None = None
    name_quote: Quote | None = None
    total: Amount | None = None
    used: Amount | None = None
    free: Amount | None = None
    compute_mode: str | None = None
    mode_quote: Quote | None = None
    mig: bool | None = None
    mig_quote: Quote | None = None
    slices: tuple[Card, ...] = ()

    @property
    def sound(self) -> bool:
        """Say whether the figures can be true: none negative, used within the total."""
        said = [part.bytes for part in (self.total, self.used, self.free) if part is not None]
        if any(value < 0 for value in said) or (self.total is not None and self.total.bytes == 0):
            return False
        if self.total is None:
            return True
        parts = [part for part in (self.used, self.free) if part is not None]
        return all(part.bytes <= self.total.bytes for part in parts)

    @property
    def used_share(self) -> float | None:
        """Return used / total where both are known."""
        if self.used is None or self.total is None or self.total.bytes <= 0:
            return None
        return self.used.bytes / self.total.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One row of a process table; `memory` is None where the driver does not tell."""

    card: str
    name: str
    kind: str
    quote: Quote
    memory: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One snapshot; `order` is the index of its first line.

    `whole` says that all cards of the machine are shown, `empty` quotes the statement that no
    process runs, `processes_shown` that a process section was there to its first row.
    """

    order: int
    cards: tuple[Card, ...] = ()
    rows: tuple[ProcessRow, ...] = ()
    empty: Quote | None = None
    processes_shown: bool = False
    whole: bool = False
    driver: tuple[str, Quote] | None = None
    cuda: tuple[str, Quote] | None = None
    wddm: Quote | None = None

    @property
    def speaks(self) -> bool:
        """Say whether there is anything in it."""
        return bool(self.cards or self.rows or self.empty or self.driver or self.cuda or self.wddm)


def fullest(cards: Iterable[Card]) -> Card | None:
    """Return the card of the greatest used share (used bytes where no total is given)."""
    known = list(cards)
    if not known:
        return None
    return max(
        known,
        key=lambda card: (
            -1.0 if card.used_share is None else card.used_share,
            -1 if card.used is None else card.used.bytes,
        ),
    )
