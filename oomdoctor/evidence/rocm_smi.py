"""Output of rocm-smi: memory lines, JSON, the concise table's share, and KFD processes.

    GPU[0]          : VRAM Total Memory (B): 68702699520
    GPU[0]          : VRAM Total Used Memory (B): 66571993088
    GPU[0]          : Card series: AMD Instinct MI210
    {"card0": {"VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "66571993088"}}
    device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series        (--csv)
    card0,0,21458059264,20458059264,Radeon RX 7900 XT
    GPU[0]          : GPU Memory Allocated (VRAM%): 96                         (--showmemuse, 6.1)
    GPU  Temp   AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
    0    35.0c  41.0W   800Mhz  1600Mhz  0%   auto  300.0W   96%   0%
    PID     PROCESS NAME    GPU(s)  VRAM USED       SDMA USED       CU OCCUPANCY
    4711    python3         1       66500000000     0               0
    No KFD PIDs currently running

Byte counts are exact; the JSON holds them as strings and is read with the same patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, Amount, derived
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import ProcessRow
from oomdoctor.evidence.snapshots import Snapshots
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from oomdoctor.evidence.snapshots import What
    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = ("vram total", "rocm system management", "kfd process", "kfd pids", "vram%")
LONGEST_JSON = 60_000
HALF_PERCENT = 0.005
_CSV: dict[str, What] = {"VRAM Total Memory (B)": "total", "VRAM Total Used Memory (B)": "used"}


@dataclass(slots=True, kw_only=True)
class _Reader(Snapshots):
    """Snapshots, and the shares of the concise table."""

    shares: dict[str, tuple[float, Quote]] = field(default_factory=dict)

    def take_memory(self, index: int, line: LogLine, found: re.Match[str], number: str) -> None:
        """Store a total or used figure of a card."""
        quote = self.document.quote(line, *found.span())
        said = Amount(bytes=int(found["count"]), slack_bytes=0, quote=quote)
        self.take(index, number, "used" if found["used"] else "total", said)

    def take_process(self, index: int, line: LogLine, words: list[str]) -> None:
        """Store a row of the KFD process table."""
        quote = self.document.quote(line)
        memory = Amount(bytes=int(words[-3]), slack_bytes=0, quote=quote)
        name = " ".join(words[1:-4])
        row = ProcessRow(card="0", name=name, kind="C", quote=quote, memory=memory)
        self.take_row(index, row)


@cache
def _text_memory() -> re.Pattern[str]:
    return re.compile(
        r"GPU\[(?P<card>\d+)\]\s*:\s*vram Total (?P<used>Used )?Memory \(B\):\s*(?P<count>\d+)",
        re.IGNORECASE,
    )


@cache
def _json_part() -> re.Pattern[str]:
    return re.compile(
        r"\"card(?P<card>\d+)\"\s*:|\"VRAM Total (?P<used>Used )?Memory \(B\)\"\s*:\s*"
        r"\"?(?P<count>\d+)"
    )


@cache
def _name() -> re.Pattern[str]:
    return re.compile(r"GPU\[(?P<card>\d+)\]\s*:\s*Card [Ss]eries:\s*(?P<name>\S[^\n]*)")


@cache
def _allocated() -> re.Pattern[str]:
    return re.compile(
        r"GPU\[(?P<card>\d+)\]\s*:\s*GPU Memory Allocated \(VRAM%\): (?P<share>\d{1,3}(?:\.\d+)?)"
    )


@cache
def _row() -> re.Pattern[str]:
    return re.compile(r"card(?P<card>\d+),")


def read(document: Document) -> Reading:
    """Read all snapshots, and return the facts of the one that belongs to the failure."""
    reader = _Reader(document=document)
    json_card = ""
    in_processes = False
    share_columns: int | None = None
    csv: tuple[str, ...] = ()
    for index, line in enumerate(document.lines):
        if '"card' in line.text or '"VRAM' in line.text:
            json_card = _take_json(reader, index, line, json_card)
        if len(line.text) > MAX_TABLE_LINE:
            continue
        _take_text(reader, index, line)
        words = line.text.split()
        if "PROCESS" in words and "PID" in words:
            in_processes = True
        elif in_processes and len(words) >= 6 and words[0].isdecimal() and words[-3].isdecimal():
            reader.take_process(index, line, words)
        csv = _take_csv(reader, index, line, csv)
        allocated = _allocated().search(line.text)
        if allocated is not None:
            share = float(allocated["share"]) / 100
            reader.shares[allocated["card"]] = (share, document.quote(line, *allocated.span()))
        if "VRAM%" in words:
            share_columns = words.index("VRAM%") - len(words)
            reader.shares = {}
        elif share_columns is not None:
            _take_share(reader, line, words, share_columns)
    reader.close()
    reading = reading_of(document, reader.done)
    return Reading(facts=(*reading.facts, *_share_facts(reader, reading)), closes=reading.closes)


def _take_text(reader: _Reader, index: int, line: LogLine) -> None:
    if "GPU[" in line.text:
        memory = _text_memory().search(line.text)
        if memory is not None:
            reader.take_memory(index, line, memory, memory["card"])
        name = _name().search(line.text)
        if name is not None:
            quote = reader.document.quote(line, *name.span())
            reader.take_name(index, name["card"], name["name"].strip(), quote)
    if "No KFD PIDs" in line.text:
        reader.empty = reader.document.quote(line)
        reader.begin(index)


def _take_csv(
    reader: _Reader, index: int, line: LogLine, columns: tuple[str, ...]
) -> tuple[str, ...]:
    """Read a row of `--csv` below its header; return the columns that are in force."""
    if line.text.startswith("device,"):
        return tuple(line.text.split(","))
    found = _row().match(line.text)
    cells = line.text.split(",")
    if found is None or not columns or len(cells) != len(columns):
        return columns
    at = 0
    for name, cell in zip(columns, cells, strict=True):
        if name in _CSV and cell.isdecimal():
            quote = reader.document.quote(line, at, at + len(cell))
            said = Amount(bytes=int(cell), slack_bytes=0, quote=quote)
            reader.take(index, found["card"], _CSV[name], said)
        at += len(cell) + 1
    return columns


def _take_json(reader: _Reader, index: int, line: LogLine, card: str) -> str:
    """Read JSON on one line or over many; return the card that the text is in."""
    for found in _json_part().finditer(line.text[:LONGEST_JSON]):
        if found["card"] is not None:
            card = found["card"]
        elif card:
            reader.take_memory(index, line, found, card)
    return card


def _take_share(reader: _Reader, line: LogLine, words: list[str], column: int) -> None:
    if len(words) < -column or not words[0].isdecimal() or not words[column].endswith("%"):
        return
    figure = words[column].removesuffix("%")
    if figure.isdecimal() and int(figure) <= 100:
        reader.shares[words[0]] = (int(figure) / 100, reader.document.quote(line))


def _share_facts(reader: _Reader, reading: Reading) -> tuple[Fact, ...]:
    """Return the share of the concise table where no bytes are given."""
    if any(fact.key == "gpu.used_share" for fact in reading.facts) or not reader.shares:
        return ()
    source = "VRAM% of rocm-smi"
    share, quote = max(reader.shares.values(), key=lambda pair: pair[0])
    facts = [derived("gpu.used_share", share, quote, source=source, slack=HALF_PERCENT)]
    if len(reader.shares) > 1:
        low = min(pair[0] for pair in reader.shares.values())
        spread = round(share - low, 2)
        facts.append(derived("gpu.imbalance", spread, quote, source=source, slack=2 * HALF_PERCENT))
    return tuple(facts)
