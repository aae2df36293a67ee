"""The table of plain `nvidia-smi` of all driver generations, whole or in pieces.

    +-----------------------------------------------------------------------------+
    | NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
    |   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |                    0 |
    | N/A   34C    P0    55W / 300W |    480MiB / 32510MiB |      0%   E. Process |
    |                               |                      |                  N/A |
    | MIG devices:                                                                |
    |  0    3   0   0  |  14366MiB / 19968MiB | 28      0 |  2   0    1    0    0 |
    | Processes:                                                                  |
    |    0   N/A  N/A   2695172      C   ./train.par                     26167MiB |
    |  No running processes found                                                 |

Rows are recognised one by one, so that pieces inside logs, quoted with `>` or indented, count too;
a card number that comes again starts a new snapshot. A usage row without a row of its name is a
card without a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from oomdoctor.evidence import nvidia_smi_rows as rows
from oomdoctor.evidence.amounts import MAX_TABLE_LINE
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, LogLine, Quote, Reading

ANCHORS = ("mib /", "mib|", "mib |", "nvidia-smi", "running processes found", "e. process", "wddm")
NAME_REACH = 3
"""The usage row follows its name row directly; a blank row may stand between."""


def read(document: Document) -> Reading:
    """Read all tables and rows, and return the facts of the snapshot of the failure."""
    return reading_of(document, tables(document))


MOST_CARDS, MOST_ROWS = 512, 4096
"""A snapshot that holds so many is more than one; each new row copies those before it."""


def tables(document: Document) -> tuple[Table, ...]:
    """Return all snapshots in the order of the text."""
    builder = _Builder(document=document)
    for index, line in enumerate(document.lines):
        if len(line.text) <= MAX_TABLE_LINE:
            builder.take(index, line)
    return builder.finish()


@dataclass(slots=True, kw_only=True)
class _Builder:
    """Collects rows into tables while the lines go by."""

    document: Document
    done: list[Table] = field(default_factory=list)
    table: Table | None = None
    named_at: int = -NAME_REACH
    in_processes: bool = False
    bare: bool = False
    in_mig: bool = False

    def take(self, index: int, line: LogLine) -> None:
        """Sort one line into the current table, or start a new one."""
        text = line.text
        spoken = "|" in text or "MiB" in text
        if spoken and not self._take_head(index, line):
            self._take_card(index, line)
        self._take_process(index, line)

    def finish(self) -> tuple[Table, ...]:
        """Return the tables seen so far."""
        self._close()
        return tuple(table for table in self.done if table.speaks)

    def _close(self) -> None:
        if self.table is not None:
            self.done.append(self.table)
        self.table, self.in_processes, self.in_mig = None, False, False
        self.named_at = -NAME_REACH

    def _current(self, index: int) -> Table:
        held = self.table
        if held is not None and (len(held.cards) >= MOST_CARDS or len(held.rows) >= MOST_ROWS):
            self._close()
        if self.table is None:
            self.table = Table(order=index)
        return self.table

    def _take_head(self, index: int, line: LogLine) -> bool:
        head = rows.head(self.document, line)
        if head is not None:
            self._close()
            self.table = replace(head, order=index)
            return True
        if self.table is not None and self.table.wddm is None and rows.says_wddm(line.text):
            self.table = replace(self.table, wddm=self.document.quote(line))
        if "MIG devices:" in line.text:
            self.in_mig, self.in_processes = True, False
            return True
        return False

    def _take_card(self, index: int, line: LogLine) -> None:
        named = rows.name_row(self.document, line)
        if named is not None:
            seen = {card.index for card in self.table.cards} if self.table is not None else set()
            if named.card.index in seen or self.in_processes:
                self._close()
            table = self._current(index)
            wddm = table.wddm or named.wddm
            self.table = replace(table, cards=(*table.cards, named.card), wddm=wddm)
            self.named_at, self.in_mig = index, False
            return
        self._take_usage(index, line)

    def _take_usage(self, index: int, line: LogLine) -> None:
        part = rows.mig_row(self.document, line)
        if part is not None:
            self._add_slice(index, part)
            return
        usage = rows.usage_row(self.document, line)
        if usage is not None and not self.in_mig:
            if self.table is not None and 0 < index - self.named_at <= NAME_REACH:
                last = self.table.cards[-1]
                card = replace(usage, index=last.index, name=last.name, name_quote=last.name_quote)
                self.table = replace(self.table, cards=(*self.table.cards[:-1], card))
                self.named_at = index - NAME_REACH - 1
            else:
                if self.in_processes:
                    self._close()
                table = self._current(index)
                self.table = replace(table, cards=(*table.cards, usage))
            return
        state = rows.mig_state(line.text)
        if state is not None and self.table is not None and self.table.cards:
            last = replace(self.table.cards[-1], mig=state, mig_quote=self.document.quote(line))
            self.table = replace(self.table, cards=(*self.table.cards[:-1], last))

    def _add_slice(self, index: int, part: Card) -> None:
        table = self._current(index)
        cards = list(table.cards)
        at = next((i for i, card in enumerate(cards) if card.index == part.index), None)
        if at is None:
            cards.append(Card(index=part.index, slices=(part,)))
        else:
            cards[at] = replace(cards[at], slices=(*cards[at].slices, part))
        self.table = replace(table, cards=tuple(cards))

    def _take_process(self, index: int, line: LogLine) -> None:
        if rows.starts_processes(line.text):
            if self.in_processes:
                self._close()
            self.in_processes, self.in_mig, self.bare = True, False, False
            self._current(index)
            return
        if self.in_processes and self._closes_bare(line.text):
            self._say_empty(index, self.document.quote(line))
            return
        if "running processes found" in line.text.lower() and "NPU" not in line.text:
            self._say_empty(index, self.document.quote(line))
            return
        row = rows.process_row(self.document, line)
        if row is not None:
            self._add_row(index, row)

    def _closes_bare(self, text: str) -> bool:
        """Say whether the process section ends right below its head: older drivers say no word."""
        bare, self.bare = self.bare, text.lstrip(" >").startswith("|====")
        return bare and text.lstrip(" >").startswith("+----")

    def _say_empty(self, index: int, quote: Quote) -> None:
        table = self._current(index)
        self.table = replace(table, empty=quote, processes_shown=True)
        self.in_processes = True

    def _add_row(self, index: int, row: ProcessRow) -> None:
        table = self._current(index)
        self.table = replace(table, rows=(*table.rows, row), processes_shown=True)
        self.in_processes = True
