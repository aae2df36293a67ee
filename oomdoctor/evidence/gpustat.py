"""Output of gpustat, with or without commands and power.

    node1                  Tue May  7 10:11:12 2024  550.54.15
    [0] NVIDIA GeForce RTX 3090 | 45'C,  98 % | 23456 / 24576 MB | anna(23000M) gdm(4M)
    [1] NVIDIA GeForce RTX 3090 | 31°C,   0 %,  25 / 350 W |     1 / 24576 MB |
    [2] Tesla K80               | 45'C,  ?? % | 11000 / 11441 MB | anna:python/4711(10900M)

"MB" is MiB; unknown figures are `??`, processes may be `(Not Supported)`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, amount
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, LogLine, Reading

ANCHORS = (" mb |", " mb|", "gpustat")


@cache
def _card() -> re.Pattern[str]:
    return re.compile(
        r"\[(?P<index>\d+)\]\s+(?P<name>\S[^|]*?)\s*\|[^|]*\|"
        r"\s*(?P<used>\d+)\s*/\s*(?P<total>\d+)\s*MB\s*(?:\||$)"
    )


@cache
def _process() -> re.Pattern[str]:
    return re.compile(r"(?P<name>[^\s()]+)\((?P<memory>\d+)M\)")


def read(document: Document) -> Reading:
    """Read all snapshots, and return the facts of the one that belongs to the failure."""
    tables: list[Table] = []
    cards: dict[str, Card] = {}
    rows: list[ProcessRow] = []
    order = 0
    for index, line in enumerate(document.lines):
        found = _card().search(line.text) if len(line.text) <= MAX_TABLE_LINE else None
        if found is None:
            continue
        number = found["index"]
        if number in cards:
            tables.append(_table(order, cards, rows))
            cards, rows = {}, []
        if not cards:
            order = index
        cards[number] = _card_of(document, line, found)
        rows.extend(_rows_of(document, line, found))
    if cards:
        tables.append(_table(order, cards, rows))
    return reading_of(document, tables)


def _table(order: int, cards: dict[str, Card], rows: list[ProcessRow]) -> Table:
    return Table(
        order=order,
        cards=tuple(cards.values()),
        rows=tuple(rows),
        processes_shown=bool(rows),
        whole=True,
    )


def _card_of(document: Document, line: LogLine, found: re.Match[str]) -> Card:
    return Card(
        index=found["index"],
        name=found["name"],
        name_quote=document.quote(line, found.start("name"), found.end("name")),
        used=amount(document, line, found, group="used"),
        total=amount(document, line, found, group="total"),
    )


def _rows_of(document: Document, line: LogLine, found: re.Match[str]) -> list[ProcessRow]:
    return [
        ProcessRow(
            card=found["index"],
            name=_program(part["name"]),
            kind="C",
            quote=document.quote(line, *part.span()),
            memory=amount(document, line, part, group="memory"),
        )
        for part in _process().finditer(line.text, found.end())
    ]


def _program(owner: str) -> str:
    """Return the command of `user:command/pid`, or the user where no command is shown."""
    return owner.partition(":")[2].partition("/")[0] or owner
