r"""The single rows of an nvidia-smi table: title, card name, usage, MIG slice, process.

| NVIDIA-SMI 550.54.15       Driver Version: 550.54.15     CUDA Version: 12.4     |
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |            0 |
| N/A   31C    P0             63W /  400W |   42677MiB /  81920MiB |  0%  Default |
|  0    1   0   0  |          14366MiB / 19968MiB    | 28      0 |  2   0    1    |
|                  |              2MiB / 32767MiB    |           |                |   (BAR1)
|    0   N/A  N/A   2695172      C   ./train.par                        26167MiB |
|    0     21440      C   [Not Found]                                   14903MiB |   (<= 440)
|    0   N/A  N/A      9164    C+G   ...\Chrome\Application\chrome.exe       N/A |   (WDDM)
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import amount
from oomdoctor.evidence.cards import Card, ProcessRow, Table
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, LogLine, Quote

MODE_WORDS = ("Default", "E. Process", "E. Thread", "Prohibited")
DEVICE_WORDS = ("nvidia-smi", "gpu", "vram", "cuda")
PERSISTENCE = r"(?:On|Off|N/A|WDDM|WDM|TCC|MCDM|ERR!|Enabled|Disabled)"


class NamedCard(NamedTuple):
    """A card's name row, and the quote of its driver model where that is WDDM."""

    card: Card
    wddm: Quote | None


@cache
def _usage() -> re.Pattern[str]:
    return re.compile(r"(?P<used>\d+)\s*MiB\s*/\s*(?P<total>\d+)\s*MiB")


@cache
def _name() -> re.Pattern[str]:
    return re.compile(
        rf"\|\s*(?P<index>\d{{1,3}})\s+(?P<name>\S[^|]*?)\s+(?P<state>{PERSISTENCE})\s*\|"
        r"\s*(?P<bus>[0-9A-Fa-fxX*]+:\S+)"
    )


@cache
def _mig() -> re.Pattern[str]:
    return re.compile(r"\|\s*(?P<gpu>\d{1,3})\s+\d+\s+\d+\s+\d+\s*\|\s*$")


@cache
def _process() -> re.Pattern[str]:
    return re.compile(
        r"[\s>]*(?P<gpu>\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?[\dxX*]+\s+"
        r"(?P<kind>C\+G|M\+C\+G|M\+C|C|G)\s+(?:(?P<name>\S[^|]*?)\s+)?"
        r"(?:(?P<memory>\d+)\s*MiB|\[?N/A\]?)\s*$"
    )


@cache
def _version(before: str) -> re.Pattern[str]:
    return re.compile(rf"{before}\s*:?\s*(?P<version>\d+(?:\.\d+)+)")


def head(document: Document, line: LogLine) -> Table | None:
    """Read the title row: driver and CUDA version; versions that differ are a sign of WSL."""
    text = line.text
    if "NVIDIA-SMI" not in text or "ersion" not in text:
        return None
    tool = _version("NVIDIA-SMI").search(text)
    driver = _version("(?:Driver|KMD) Version").search(text)
    cuda = _version("CUDA (?:UMD )?Version").search(text)
    if driver is None and cuda is None:
        return None
    differ = tool is not None and driver is not None and tool["version"] != driver["version"]
    return Table(
        order=0,
        whole=True,
        driver=driver and (driver["version"], document.quote(line, *driver.span())),
        cuda=cuda and (cuda["version"], document.quote(line, *cuda.span())),
        wddm=document.quote(line) if differ else None,
    )


def says_wddm(text: str) -> bool:
    """Say whether a header row names the driver model, as only Windows builds do."""
    return "TCC/WDDM" in text or "Driver-Model" in text


def name_row(document: Document, line: LogLine) -> NamedCard | None:
    """Read the row with number, name and bus id of a card."""
    if ":" not in line.text:
        return None
    found = _name().search(line.text)
    if found is None:
        return None
    quote = document.quote(line, found.start("name"), found.end("name"))
    card = Card(index=str(int(found["index"])), name=found["name"], name_quote=quote)
    is_wddm = found["state"] in ("WDDM", "WDM", "MCDM")
    state_quote = document.quote(line, found.start("state"), found.end("state"))
    return NamedCard(card=card, wddm=state_quote if is_wddm else None)


def usage_row(document: Document, line: LogLine) -> Card | None:
    """Read `480MiB / 32510MiB` of a card's usage row, or of a line that speaks of the device."""
    text = line.text
    if "MiB" not in text:
        return None
    found = _usage().search(text)
    if found is None or not _is_usage_place(text, found):
        return None
    mode = next((word for word in MODE_WORDS if word in text[found.end() :]), None)
    mode_at = text.find(mode) if mode else 0
    return Card(
        used=amount(document, line, found, group="used"),
        total=amount(document, line, found, group="total"),
        compute_mode=mode,
        mode_quote=document.quote(line, mode_at, mode_at + len(mode)) if mode else None,
    )


def _is_usage_place(text: str, found: re.Match[str]) -> bool:
    """Tell a usage cell from the BAR1 cell of a MIG slice and from progress bars of downloads."""
    before = text[: found.start()]
    in_cell = before.rstrip().endswith("|") and text[found.end() :].lstrip()[:1] in ("|", "")
    if in_cell:
        cells = before.split("|")
        first = cells[1].strip() if len(cells) > 2 else "lone cell"
        return bool(first)
    return any(word in text.lower() for word in DEVICE_WORDS)


def mig_row(document: Document, line: LogLine) -> Card | None:
    """Read the row of a MIG slice: four numbers, then its own memory."""
    if "MiB" not in line.text:
        return None
    found = _usage().search(line.text)
    place = _mig().search(line.text[: found.start()]) if found is not None else None
    if found is None or place is None:
        return None
    return Card(
        index=str(int(place["gpu"])),
        used=amount(document, line, found, group="used"),
        total=amount(document, line, found, group="total"),
    )


def mig_state(text: str) -> bool | None:
    """Read the third row of a card: MIG mode alone in the last of three cells."""
    cells = [cell.strip() for cell in text.split("|")]
    if len(cells) != 5 or cells[1] or cells[2]:
        return None
    return {"Enabled": True, "Enabled*": True, "Disabled": False, "Disabled*": False}.get(cells[3])


def starts_processes(text: str) -> bool:
    """Say whether this is the title of the process section."""
    return "|" in text and "Processes:" in text


def process_row(document: Document, line: LogLine) -> ProcessRow | None:
    """Read a row of the process section of any generation."""
    text = line.text
    if "MiB" not in text and "N/A" not in text:
        return None
    start = text.find("|") + 1
    end = text.rfind("|") if text.rstrip().endswith("|") and text.rfind("|") >= start else len(text)
    found = _process().match(text, start, end)
    if found is None:
        return None
    quote = document.quote(line, found.start("gpu"), found.end())
    name = found["name"] or ""
    memory = amount(document, line, found, group="memory") if found["memory"] else None
    return ProcessRow(
        card=str(int(found["gpu"])), name=name, kind=found["kind"], quote=quote, memory=memory
    )
