"""The table of `npu-smi info` (Ascend): chips with their HBM, and processes.

    | npu-smi 23.0.2.1              Version: 23.0.2.1                                        |
    | NPU   Name                    | Health        | Power(W)    Temp(C)  Hugepages-Usage(page)|
    | Chip                          | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)|
    | 0     910B2                   | OK            | 93.1        46       0    / 0             |
    | 0                             | 0000:C1:00.0  | 0           0    / 0    60419 / 65536     |
    | NPU     Chip                  | Process id    | Process name      | Process memory(MB)    |
    | 0       0                     | 4711          | python            | 60331                 |
    | No running processes found in NPU 1                                                      |

The last `used / total` of a chip's second row is its HBM, counted in MiB.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, amount
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, Quote, Reading

ANCHORS = ("npu-smi", "hbm-usage")


@cache
def _name() -> re.Pattern[str]:
    return re.compile(r"\|\s*(?P<index>\d+)\s+(?P<name>[A-Za-z0-9]\S*)\s*\|\s*(?:OK|Warning|Alarm)")


@cache
def _usage() -> re.Pattern[str]:
    return re.compile(r"(?P<used>\d+)\s*/\s*(?P<total>\d+)\s*\|\s*$")


@cache
def _process() -> re.Pattern[str]:
    return re.compile(
        r"\|\s*(?P<card>\d+)\s+\d+\s*\|\s*\d+\s*\|\s*(?P<name>[^|]*?)\s*\|\s*(?P<memory>\d+)\s*\|"
    )


def read(document: Document) -> Reading:
    """Read the table; of repeated ones the last before the failure counts."""
    tables: list[Table] = []
    block: list[int] = []
    for index, line in enumerate(document.lines):
        if "npu-smi" in line.text and "Version" in line.text and block:
            tables.append(_table(document, block))
            block = []
        if "|" in line.text and len(line.text) <= MAX_TABLE_LINE:
            block.append(index)
    if block:
        tables.append(_table(document, block))
    return reading_of(document, tables)


def _full_name(name: str) -> str:
    """Return `Ascend 910B2`, however the chip is written."""
    return f"Ascend {name.removeprefix('Ascend')}"


def _table(document: Document, block: list[int]) -> Table:
    cards: list[Card] = []
    rows: list[ProcessRow] = []
    empty: Quote | None = None
    pending: tuple[str, str, Quote] | None = None
    for index in block:
        line = document.lines[index]
        named = _name().search(line.text)
        process = _process().search(line.text)
        usage = _usage().search(line.text)
        if named is not None:
            pending = (named["index"], named["name"], document.quote(line, *named.span("name")))
        elif process is not None:
            rows.append(
                ProcessRow(
                    card=process["card"],
                    name=process["name"],
                    kind="C",
                    quote=document.quote(line, *process.span()),
                    memory=amount(document, line, process, group="memory"),
                )
            )
        elif usage is not None and pending is not None:
            cards.append(
                Card(
                    index=pending[0],
                    name=_full_name(pending[1]),
                    name_quote=pending[2],
                    used=amount(document, line, usage, group="used"),
                    total=amount(document, line, usage, group="total"),
                )
            )
            pending = None
        elif "No running processes found" in line.text:
            empty = document.quote(line)
    return Table(
        order=block[0],
        cards=tuple(cards),
        rows=tuple(rows),
        empty=empty,
        processes_shown=bool(rows) or empty is not None,
        whole=bool(cards),
    )
