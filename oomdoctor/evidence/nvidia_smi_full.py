"""Sections of `nvidia-smi -q`, whole or with `-d MEMORY`, `-d COMPUTE`, `-d PIDS`.

    Driver Version                            : 550.54.15
    CUDA Version                              : 12.4
    Attached GPUs                             : 2
    GPU 00000000:07:00.0
        Product Name                          : NVIDIA A100-SXM4-80GB
        Product Architecture                  : Ampere
        MIG Mode
            Current                           : Disabled
        FB Memory Usage
            Total                             : 81920 MiB
            Reserved                          : 648 MiB       (newer drivers)
            Used                              : 79854 MiB
            Free                              : 1417 MiB
        BAR1 Memory Usage
            Total                             : 131072 MiB
        Compute Mode                          : Default
        Processes                             : None
            Process ID                        : 4711
                Type                          : C
                Name                          : /usr/bin/python3
                Used GPU Memory               : 79826 MiB

A line without a colon opens a section; only `FB Memory Usage` counts as the card's memory,
and after `MIG Device` as that slice's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, Amount, stated
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table, fullest
from oomdoctor.model.core import Reading
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("fb memory usage", "attached gpus", "used gpu memory")


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Goes through the lines with the current section in mind."""

    document: Document
    done: list[Table] = field(default_factory=list)
    table: Table | None = None
    section: str = ""
    architectures: list[Fact] = field(default_factory=list)

    def take(self, index: int, line: LogLine) -> None:
        """Sort one line in."""
        found = _card_title().match(line.text)
        if found is not None:
            self._new_card(index)
            return
        key, colon, value = line.text.partition(" : ")
        name = key.strip()
        if not colon:
            self.section = name or self.section
            if name == "MIG Device":
                self._new_slice()
            return
        if name in ("Driver Version", "Attached GPUs", "Timestamp"):
            self._new_table(index, name, line, value.strip())
            return
        if self.table is None:
            self.table = Table(order=index)
        self._take_value(line, name, value.strip())

    def finish(self) -> tuple[Table, ...]:
        """Return all tables."""
        if self.table is not None:
            self.done.append(self.table)
            self.table = None
        return tuple(self.done)

    def _new_table(self, index: int, name: str, line: LogLine, value: str) -> None:
        if self.table is None or self.table.cards:
            self.finish()
            self.table = Table(order=index)
        self.section = ""
        if name == "Driver Version" and value[:1].isdecimal():
            self.table = replace(self.table, driver=(value, self.document.quote(line)))
        if name == "Attached GPUs":
            self.table = replace(self.table, whole=True)

    def _new_card(self, index: int) -> None:
        table = self.table or Table(order=index)
        card = Card(index=str(len(table.cards)))
        self.table = replace(table, cards=(*table.cards, card))
        self.section = ""

    def _new_slice(self) -> None:
        if self.table is not None and self.table.cards:
            last = self.table.cards[-1]
            last = replace(last, slices=(*last.slices, Card(index=last.index)))
            self.table = replace(self.table, cards=(*self.table.cards[:-1], last))

    def _take_value(self, line: LogLine, name: str, value: str) -> None:
        table = self.table
        if table is None:
            return
        quote = self.document.quote(line)
        if name == "CUDA Version" and value[:1].isdecimal():
            self.table = replace(table, cuda=(value, quote))
        elif name == "Used GPU Memory":
            self._take_process(line, value)
        elif name in ("Name", "Type", "Process ID"):
            self._take_process_part(line, name, value)
        elif name == "Processes" and value == "None":
            self.table = replace(table, empty=quote, processes_shown=True)
        elif name == "Product Architecture":
            self.architectures.append(stated("gpu.architecture", value, quote))
        else:
            self._take_card_value(line, name)
        if "WDDM" in value and self.table is not None:
            self.table = replace(self.table, wddm=quote)

    def _take_card_value(self, line: LogLine, name: str) -> None:
        if self.table is None:
            return
        cards = self.table.cards or (Card(index="0"),)
        card, part = cards[-1], (cards[-1].slices or (None,))[-1]
        if self.section == "FB Memory Usage" and name in ("Total", "Used", "Free"):
            if part is None:
                card = _with_memory(card, self.document, line, name=name)
            else:
                part = _with_memory(part, self.document, line, name=name)
                card = replace(card, slices=(*card.slices[:-1], part))
        else:
            card = _with_setting(card, self.document, line, section=self.section, name=name)
        self.table = replace(self.table, cards=(*cards[:-1], card))

    def _take_process_part(self, line: LogLine, name: str, value: str) -> None:
        if self.table is None:
            return
        if name == "Process ID":
            row = ProcessRow(
                card=str(max(0, len(self.table.cards) - 1)),
                name="",
                kind="C",
                quote=self.document.quote(line),
            )
            self.table = replace(self.table, rows=(*self.table.rows, row), processes_shown=True)
            return
        if self.table.rows:
            last = self.table.rows[-1]
            changed = replace(last, name=value) if name == "Name" else replace(last, kind=value)
            self.table = replace(self.table, rows=(*self.table.rows[:-1], changed))

    def _take_process(self, line: LogLine, value: str) -> None:
        if self.table is None or not self.table.rows:
            return
        said = _amount(self.document, line, value)
        last = replace(self.table.rows[-1], memory=said)
        self.table = replace(self.table, rows=(*self.table.rows[:-1], last))


@cache
def _card_title() -> re.Pattern[str]:
    return re.compile(r"\s*GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+\s*$")


def read(document: Document) -> Reading:
    """Read all answers, and return the facts of the one that belongs to the failure."""
    reader = _Reader(document=document)
    for index, line in enumerate(document.lines):
        if len(line.text) <= MAX_TABLE_LINE:
            reader.take(index, line)
    tables = tuple(table for table in reader.finish() if _is_answer(table))
    reading = reading_of(document, tables)
    if not tables or fullest(tables[-1].cards) is None:
        return reading
    return Reading(facts=(*reading.facts, *reader.architectures[:1]), closes=reading.closes)


def _is_answer(table: Table) -> bool:
    """Say whether the lines were an answer and not other text with colons."""
    told = any(card.total or card.used or card.slices for card in table.cards)
    return told or bool(table.rows) or table.whole


def _amount(document: Document, line: LogLine, value: str) -> Amount | None:
    size = parse_size(value)
    if size is None:
        return None
    quote = document.quote(line)
    return Amount(bytes=size.bytes, slack_bytes=size.slack_bytes, quote=quote)


def _with_memory(card: Card, document: Document, line: LogLine, *, name: str) -> Card:
    said = _amount(document, line, line.text.partition(" : ")[2].strip())
    if said is None:
        return card
    match name:
        case "Total":
            return replace(card, total=said)
        case "Used":
            return replace(card, used=said)
        case _:
            return replace(card, free=said)


def _with_setting(
    card: Card, document: Document, line: LogLine, *, section: str, name: str
) -> Card:
    value = line.text.partition(" : ")[2].strip()
    quote = document.quote(line)
    if name == "Product Name":
        return replace(card, name=value, name_quote=quote)
    if name == "Compute Mode":
        return replace(card, compute_mode=value.replace("_", " "), mode_quote=quote)
    mig = {"Enabled": True, "Disabled": False}.get(value)
    if section == "MIG Mode" and name == "Current" and mig is not None:
        return replace(card, mig=mig, mig_quote=quote)
    return card
