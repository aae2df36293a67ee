"""Output of amd-smi: its table, `monitor`, `metric --mem-usage` and `process`, as text or JSON.

| 0000:09:00.0    AMD Instinct MI325X | 0 %      49 °C   0          144/1000 W |
|   0       0       3        SPX/NPS1 | 0 %        N/A         251283/262128 MB |
|    0      12345  python3               2.0 MB   180.1 GB  182.3 GB    0.0 %  |
|  No running processes found                                                  |

GPU  POWER  GPU_TEMP  ...  VRAM_USED  VRAM_TOTAL
  0  136 W  42 °C     ...  64100 MB   65520 MB

GPU: 0
    MEM_USAGE:
        TOTAL_VRAM: 65520 MB
        USED_VRAM: 64100 MB
        FREE_VRAM: 1420 MB
    PROCESS_INFO:
        NAME: python3
        MEMORY_USAGE:
            VRAM_MEM: 61.2 GB

"total_vram": {"value": 65520, "unit": "MB"}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, amount_in
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import ProcessRow
from oomdoctor.evidence.snapshots import Snapshots

if TYPE_CHECKING:
    from oomdoctor.evidence.amounts import Amount
    from oomdoctor.evidence.snapshots import What
    from oomdoctor.model.core import Document, LogLine, Quote, Reading

ANCHORS = ("amd-smi", "amdgpu version", "total_vram", "used_vram", "vram_used", "vram_mem")
_UNIT = r"(?P<unit>[KMG]?i?B)"
_FIGURES: tuple[What, ...] = ("used", "free", "total")


@dataclass(slots=True, kw_only=True)
class _Reader(Snapshots):
    """Snapshots, and the card, its name and the program that were read last."""

    number: str = "0"
    name: tuple[str, Quote] | None = None
    program: str = ""
    columns: tuple[str, ...] = ()

    def take_figure(self, index: int, what: What, said: Amount | None) -> None:
        """Store a figure of the card whose number was read last, and its name once."""
        if said is None:
            return
        self.take(index, self.number, what, said)
        if self.name is not None:
            self.take_name(index, self.number, *self.name)
            self.name = None


@cache
def _title() -> re.Pattern[str]:
    return re.compile(r"\|\s*[0-9a-fA-F]{4}:\S+\s+(?P<name>AMD \S[^|]*?|Radeon\S*[^|]*?)\s*\|")


@cache
def _usage() -> re.Pattern[str]:
    return re.compile(
        rf"\|\s*(?P<card>\d+)\s[^|]*\|[^|]*?\s(?P<used>\d+)/(?P<total>\d+) {_UNIT}\s*\|"
    )


@cache
def _process() -> re.Pattern[str]:
    return re.compile(
        r"\|\s*(?P<card>\d+)\s+\d+\s+(?P<name>\S+(?: \S+)*?)\s+[\d.]+ [KMG]?i?B\s+"
        rf"(?P<memory>[\d.]+) {_UNIT}\s+"
    )


@cache
def _entry() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<kind>TOTAL|USED|FREE)_VRAM\"?:\s*(?:{{\s*\"value\":\s*)?(?P<figure>[\d.]+)"
        rf"(?:,\s*\"unit\":\s*\"|\s*){_UNIT}",
        re.IGNORECASE,
    )


@cache
def _memory() -> re.Pattern[str]:
    return re.compile(
        rf"\bVRAM_MEM\"?:\s*(?:{{\s*\"value\":\s*)?(?P<memory>[\d.]+)"
        rf"(?:,\s*\"unit\":\s*\"|\s*){_UNIT}",
        re.IGNORECASE,
    )


@cache
def _cell() -> re.Pattern[str]:
    return re.compile(rf"(?P<figure>\d+(?:\.\d+)?) {_UNIT}\b|\S+(?: (?:W|°C|%|MHz|MB|GB))?")


def read(document: Document) -> Reading:
    """Read all snapshots, and return the facts of the one that belongs to the failure."""
    reader = _Reader(document=document)
    for index, line in enumerate(document.lines):
        if len(line.text) > MAX_TABLE_LINE:
            continue
        if "|" in line.text:
            _take_table(reader, index, line)
        elif "VRAM_USED" in line.text and "VRAM_TOTAL" in line.text:
            reader.columns = tuple(line.text.split())
        elif reader.columns:
            _take_monitor(reader, index, line)
        _take_entries(reader, index, line)
    reader.close()
    return reading_of(document, reader.done)


def _take_table(reader: _Reader, index: int, line: LogLine) -> None:
    document = reader.document
    title = _title().search(line.text)
    if title is not None:
        quote = document.quote(line, title.start("name"), title.end("name"))
        reader.name = (title["name"], quote)
        return
    usage = _usage().search(line.text)
    if usage is not None:
        reader.number = usage["card"]
        said = amount_in(document, line, usage, group="used", unit=usage["unit"])
        reader.take_figure(index, "used", said)
        said = amount_in(document, line, usage, group="total", unit=usage["unit"])
        reader.take_figure(index, "total", said)
        return
    process = _process().search(line.text)
    if process is not None:
        memory = amount_in(document, line, process, group="memory", unit=process["unit"])
        quote = document.quote(line, *process.span())
        row = ProcessRow(
            card=process["card"], name=process["name"], kind="C", quote=quote, memory=memory
        )
        reader.take_row(index, row)
    elif "No running processes found" in line.text and reader.order is not None:
        reader.empty = document.quote(line)


def _take_monitor(reader: _Reader, index: int, line: LogLine) -> None:
    """Read a row of `amd-smi monitor`: a cell is a word with its unit."""
    cells = list(_cell().finditer(line.text))
    if len(cells) != len(reader.columns) or not cells[0][0].isdecimal():
        reader.columns = ()
        return
    reader.number = cells[0][0]
    for what in _FIGURES:
        name = f"VRAM_{what.upper()}"
        cell = cells[reader.columns.index(name)] if name in reader.columns else None
        if cell is not None and cell["figure"] is not None:
            said = amount_in(reader.document, line, cell, group="figure", unit=cell["unit"])
            reader.take_figure(index, what, said)


def _take_entries(reader: _Reader, index: int, line: LogLine) -> None:
    """Read `KEY: value` lines and their JSON."""
    numbered = re.match(r"\s*\"?gpu\"?: ?\"?(\d+)", line.text, re.IGNORECASE)
    if numbered is not None:
        reader.number = numbered[1]
    named = re.match(r"\s*\"?NAME\"?: ?\"?([^\",]+)", line.text, re.IGNORECASE)
    if named is not None:
        reader.program = named[1].strip()
    for found in _entry().finditer(line.text):
        said = amount_in(reader.document, line, found, group="figure", unit=found["unit"])
        what = next(one for one in _FIGURES if one == found["kind"].lower())
        reader.take_figure(index, what, said)
    memory = _memory().search(line.text)
    if memory is not None and reader.program:
        said = amount_in(reader.document, line, memory, group="memory", unit=memory["unit"])
        quote = reader.document.quote(line, *memory.span())
        row = ProcessRow(
            card=reader.number, name=reader.program, kind="C", quote=quote, memory=said
        )
        reader.take_row(index, row)
        reader.program = ""
