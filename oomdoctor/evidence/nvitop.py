"""Screens of nvitop (`nvitop -1`), full and compact.

│ NVITOP 1.3.2         Driver Version: 550.54.15      CUDA Driver Version: 12.4 │
│   0  A100-SXM4-80GB      On   │ 00000000:07:00.0 Off │                    0 │
│ N/A   31C    P0    63W / 400W │  77.98GiB / 80.00GiB │      0%      Default │
│ 0  N/A  31C  P0   63W / 400W  │  79854MiB / 80.00GiB │      0%      Default │   (compact)
│   0    4711 C    anna 77.96GiB  98  45  95.3  1.2  1:02:03  python3 train.py │
│  No running processes found                                                  │
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, Amount, amount_in
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.core import Document, LogLine, Quote, Reading

ANCHORS = ("│", "nvitop")
UNIT = r"[KMG]iB"


@cache
def _name() -> re.Pattern[str]:
    return re.compile(
        r"│\s*(?P<index>\d+)\s+(?P<name>\S[^│]*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*│\s*[0-9A-Fa-f]+:\S+"
    )


@cache
def _usage() -> re.Pattern[str]:
    return re.compile(
        rf"│\s*(?P<first>[^│]*?)\s*│\s*(?P<used>\d+(?:\.\d+)?)(?P<used_unit>{UNIT})\s*/\s*"
        rf"(?P<total>\d+(?:\.\d+)?)(?P<total_unit>{UNIT})\s*│"
    )


@cache
def _process() -> re.Pattern[str]:
    return re.compile(
        r"│\s*(?P<card>\d+)\s+\d+\s+(?P<kind>C|G|X|C\+G)\s+\S+\s+"
        rf"(?:(?P<memory>\d+(?:\.\d+)?)(?P<unit>{UNIT})|(?:WDDM:)?N/A)\s+"
        r"(?P<rest>[^│]*)│?"
    )


def read(document: Document) -> Reading:
    """Read all screens, and return the facts of the one that belongs to the failure."""
    screens: list[list[tuple[int, LogLine]]] = []
    for index, line in enumerate(document.lines):
        if "│" not in line.text or len(line.text) > MAX_TABLE_LINE:
            continue
        if not screens or "NVITOP" in line.text:
            screens.append([])
        screens[-1].append((index, line))
    return reading_of(document, [_table(document, screen) for screen in screens if screen])


def _table(document: Document, lines: Iterable[tuple[int, LogLine]]) -> Table:
    cards: dict[str, Card] = {}
    rows: list[ProcessRow] = []
    empty: Quote | None = None
    order: int | None = None
    name: tuple[str, str, Quote] | None = None
    for index, line in lines:
        order = index if order is None else order
        named = _name().search(line.text)
        usage = _usage().search(line.text)
        process = _process().search(line.text)
        if named is not None:
            quote = document.quote(line, named.start("name"), named.end("name"))
            name = (named["index"], named["name"], quote)
        elif usage is not None:
            card = _card(document, line, usage, name)
            cards[card.index or ""] = card
            name = None
        elif process is not None:
            rows.append(_row(document, line, process))
        elif "No running processes found" in line.text:
            empty = document.quote(line)
    return Table(
        order=order or 0,
        cards=tuple(cards.values()),
        rows=tuple(rows),
        empty=empty,
        processes_shown=bool(rows) or empty is not None,
        whole=bool(cards),
    )


def _card(
    document: Document, line: LogLine, usage: re.Match[str], name: tuple[str, str, Quote] | None
) -> Card:
    """Return the card of a usage row: named by the row above, or by its own number (compact)."""
    leading = usage["first"].split(maxsplit=1)[:1]
    own = leading[0] if leading and leading[0].isdecimal() else "0"
    rest = line.text[usage.end() :]
    mode = next((word for word in ("Default", "E. Process", "Prohibited") if word in rest), None)
    return Card(
        index=name[0] if name else own,
        name=name[1] if name else None,
        name_quote=name[2] if name else None,
        used=_figure(document, line, usage, "used"),
        total=_figure(document, line, usage, "total"),
        compute_mode=mode,
        mode_quote=document.quote(line) if mode else None,
    )


def _figure(document: Document, line: LogLine, found: re.Match[str], group: str) -> Amount | None:
    return amount_in(document, line, found, group=group, unit=found[f"{group}_unit"])


def _row(document: Document, line: LogLine, found: re.Match[str]) -> ProcessRow:
    """Return a process row; the command stands behind a running time such as 1:02:03."""
    words = found["rest"].split()
    times = [at for at, word in enumerate(words) if re.fullmatch(r"[\d:.]+:\d\d(\.\d+)?", word)]
    command = " ".join(words[times[-1] + 1 :]) if times else " ".join(words)
    memory = None
    if found["memory"] is not None:
        memory = amount_in(document, line, found, group="memory", unit=found["unit"])
    return ProcessRow(
        card=found["card"],
        name=command.strip(". "),
        kind="G" if found["kind"] == "G" else "C",
        quote=document.quote(line),
        memory=memory,
    )
