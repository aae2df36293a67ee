"""Output of xpu-smi: `stats`, `discovery` and `ps`.

    | Device ID                   | 0                                          |
    | GPU Memory Used (MiB)       | 15890                                      |
    | GPU Memory Util (%)         | 98                                         |
    | Device Name: Intel(R) Arc(TM) A770 Graphics                              |
    | Memory Physical Size: 16288.00 MiB                                       |
    PID       Command             DeviceID       SHR            MEM
    885596    python              0              0              15981212

`ps` counts in KiB. From version 2 on a table like nvidia-smi's is printed: `nvidia_smi` reads it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, amount, amount_in
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, LogLine, Reading

ANCHORS = ("gpu memory used (mib)", "memory physical size", "deviceid", "xpu-smi ps")
OWN_TOOL = "xpu-smi"
"""The tool itself stands in its list of processes."""


@cache
def _used() -> re.Pattern[str]:
    return re.compile(r"GPU Memory Used \(MiB\)\s*\|\s*(?:Tile 0: )?(?P<used>\d+(?:\.\d+)?)")


@cache
def _total() -> re.Pattern[str]:
    return re.compile(r"Memory Physical Size:\s*(?P<total>\d+(?:\.\d+)?) MiB")


@cache
def _name() -> re.Pattern[str]:
    return re.compile(r"Device Name:\s*(?P<name>Intel[^|]*[^|\s])")


@cache
def _device() -> re.Pattern[str]:
    return re.compile(r"\|\s*Device ID\s*\|?:?\s*(?P<index>\d+)")


@cache
def _process() -> re.Pattern[str]:
    return re.compile(r"^\s*\d+\s+(?P<name>\S+)\s+(?P<card>\d+)\s+\d+\s+(?P<memory>\d+)\s*$")


def read(document: Document) -> Reading:
    """Return the facts of the last figures of each device, as one table."""
    indexes = haystack_of(document).lines_with(("memory", "device", "pid", *ANCHORS))
    cards: dict[str, Card] = {}
    number, order = "0", None
    for index in indexes:
        line = document.lines[index]
        if len(line.text) > MAX_TABLE_LINE:
            continue
        device = _device().search(line.text)
        number = device["index"] if device is not None else number
        card = _with_line(document, line, cards.get(number, Card(index=number)))
        if card != cards.get(number, Card(index=number)):
            cards[number] = card
            order = index if order is None else order
    rows = _rows(document)
    table = Table(
        order=order or 0,
        cards=tuple(cards.values()),
        rows=tuple(rows),
        processes_shown=bool(rows),
    )
    return reading_of(document, [table])


def _with_line(document: Document, line: LogLine, card: Card) -> Card:
    used = _used().search(line.text)
    if used is not None:
        return replace(card, used=amount(document, line, used, group="used"))
    total = _total().search(line.text)
    if total is not None:
        return replace(card, total=amount(document, line, total, group="total"))
    name = _name().search(line.text)
    if name is not None:
        return replace(card, name=name["name"], name_quote=document.quote(line, *name.span("name")))
    return card


def _rows(document: Document) -> list[ProcessRow]:
    """Read the list of processes below its header."""
    rows: list[ProcessRow] = []
    inside = False
    for line in document.lines:
        if "DeviceID" in line.text and "PID" in line.text:
            inside, rows = True, []
            continue
        found = _process().match(line.text) if inside and len(line.text) < MAX_TABLE_LINE else None
        if found is None:
            inside = False
        elif found["name"] != OWN_TOOL:
            memory = amount_in(document, line, found, group="memory", unit="KiB")
            quote = document.quote(line, *found.span())
            rows.append(
                ProcessRow(
                    card=found["card"], name=found["name"], kind="C", quote=quote, memory=memory
                )
            )
    return rows
