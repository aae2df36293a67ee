"""Answers of `nvidia-smi --query-gpu` and `--query-compute-apps` in csv.

    index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB], compute_mode
    0, NVIDIA A100-SXM4-80GB, 81920 MiB, 79854 MiB, 1543 MiB, Default
    gpu_uuid, pid, process_name, used_gpu_memory [MiB]
    GPU-3f8c..., 4711, /usr/bin/python3, 79826 MiB
    $ nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv,noheader,nounits
    0, 79854, 81920

The columns come from the header line, or (with `noheader`) from the command line where that is
shown. Values are MiB with or without their unit; `[N/A]` and `[Not Supported]` are absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, Amount
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table
from oomdoctor.units import size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.model.core import Document, LogLine, Quote, Reading

ANCHORS = ("memory.used", "memory.total", "memory.free", "used_memory", "used_gpu_memory")
CARD_MARKS = ("memory.total", "memory.used", "memory.free")
APP_MARKS = ("used_memory", "used_gpu_memory")


@dataclass(slots=True, kw_only=True)
class _Query:
    """One answer while its rows are read."""

    order: int
    columns: tuple[str, ...]
    cards: list[Card] = field(default_factory=list)
    rows: list[ProcessRow] = field(default_factory=list)
    driver: tuple[str, Quote] | None = None


@cache
def _command() -> re.Pattern[str]:
    return re.compile(r"--query-(?:gpu|compute-apps)[= ][\"']?(?P<fields>[\w.,]+)")


@cache
def _figure() -> re.Pattern[str]:
    return re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMG]i?B)?\Z")


def read(document: Document) -> Reading:
    """Read all answers, and return the facts of the one that belongs to the failure."""
    return reading_of(document, _joined(_queries(document)))


def _queries(document: Document) -> list[_Query]:
    queries: list[_Query] = []
    current: _Query | None = None
    for index, line in enumerate(document.lines):
        columns = _columns(line.text)
        if columns is not None:
            current = _Query(order=index, columns=columns)
            queries.append(current)
        elif current is not None and not _take(document, line, current):
            started = bool(current.cards or current.rows)
            current = None if started or line.text.strip() else current
    return queries


def _columns(text: str) -> tuple[str, ...] | None:
    """Return the column names of a header line or of a shown command, without units."""
    if not any(mark in text for mark in (*CARD_MARKS, *APP_MARKS)) or len(text) > MAX_TABLE_LINE:
        return None
    command = _command().search(text)
    if command is not None:
        return tuple(command["fields"].split(","))
    cells = [cell.strip().partition(" ")[0] for cell in text.split(",")]
    plain = all(re.fullmatch(r"[a-z_][\w.]*", cell) for cell in cells)
    return tuple(cells) if plain else None


def _take(document: Document, line: LogLine, query: _Query) -> bool:
    """Add a data row; False where the line is none."""
    cells = [cell.strip() for cell in line.text.split(",")]
    if len(cells) != len(query.columns) or len(line.text) > MAX_TABLE_LINE:
        return False
    said = dict(zip(query.columns, cells, strict=True))
    amounts = {name: _amount(document, line, value) for name, value in said.items()}
    if any(mark in said for mark in APP_MARKS):
        row = _app(document, line, said, amounts)
        query.rows.append(row)
        return True
    if not any(amounts.get(mark) is not None for mark in CARD_MARKS):
        return False
    query.cards.append(_card(document, line, said, amounts, place=len(query.cards)))
    if said.get("driver_version", "")[:1].isdecimal():
        query.driver = (said["driver_version"], document.quote(line))
    return True


def _amount(document: Document, line: LogLine, value: str) -> Amount | None:
    found = _figure().match(value)
    scale = unit_bytes(found["unit"] or "MiB") if found is not None else None
    if found is None or scale is None:
        return None
    size = size_of(found["number"], scale)
    quote = document.quote(line)
    return Amount(bytes=size.bytes, slack_bytes=size.slack_bytes, quote=quote)


def _card(
    document: Document,
    line: LogLine,
    said: Mapping[str, str],
    amounts: Mapping[str, Amount | None],
    *,
    place: int,
) -> Card:
    name = said.get("name") or said.get("gpu_name")
    mode = said.get("compute_mode")
    mig = {"Enabled": True, "Disabled": False}.get(said.get("mig.mode.current", ""))
    quote = document.quote(line)
    return Card(
        index=said.get("index") or str(place),
        name=name,
        name_quote=quote if name else None,
        total=amounts.get("memory.total"),
        used=amounts.get("memory.used"),
        free=amounts.get("memory.free"),
        compute_mode=mode,
        mode_quote=quote if mode else None,
        mig=mig,
        mig_quote=quote if mig is not None else None,
    )


def _app(
    document: Document,
    line: LogLine,
    said: Mapping[str, str],
    amounts: Mapping[str, Amount | None],
) -> ProcessRow:
    """Return a process row; cards are told apart by their uuid or bus id where that is asked."""
    card = next((said[key] for key in ("gpu_uuid", "gpu_bus_id", "gpu_serial") if key in said), "?")
    return ProcessRow(
        card=card,
        name=said.get("process_name") or said.get("name") or "",
        kind="C",
        quote=document.quote(line),
        memory=amounts.get("used_gpu_memory") or amounts.get("used_memory"),
    )


def _joined(queries: Sequence[_Query]) -> tuple[Table, ...]:
    """Make tables; an answer about processes joins the answer about cards before it."""
    tables: list[Table] = []
    for query in queries:
        asked_apps = any(mark in query.columns for mark in APP_MARKS)
        if asked_apps and tables and not tables[-1].rows and query.rows:
            tables[-1] = replace(tables[-1], rows=_numbered(query.rows), processes_shown=True)
            continue
        if query.cards or query.rows:
            tables.append(
                Table(
                    order=query.order,
                    cards=tuple(query.cards),
                    rows=_numbered(query.rows),
                    processes_shown=bool(query.rows),
                    whole=bool(query.cards),
                    driver=query.driver,
                )
            )
    return tuple(tables)


def _numbered(rows: Sequence[ProcessRow]) -> tuple[ProcessRow, ...]:
    """Give cards that are named by uuid a name of their own, `0` where there is only one."""
    names = list(dict.fromkeys(row.card for row in rows))
    if len(names) == 1:
        return tuple(replace(row, card="0") for row in rows)
    return tuple(rows)
