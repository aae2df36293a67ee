"""Tables of `torch.cuda.memory_summary()`, of every version and of other accelerators.

    |===========================================================================|
    |                  PyTorch CUDA memory summary, device ID 0                 |
    |---------------------------------------------------------------------------|
    |            CUDA OOMs: 1            |        cudaMalloc retries: 3         |
    |===========================================================================|
    |        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
    |---------------------------------------------------------------------------|
    | Allocated memory      |   14336 MiB |   15360 MiB |   46592 MiB |   32256 MiB |
    |       from large pool |   14300 MiB |   15324 MiB |   46500 MiB |   32200 MiB |
    | Active memory         |   14340 MiB | ...
    | Requested memory      |   14301 MiB | ...            (absent in older versions)
    | GPU reserved memory   |   16384 MiB | ...            (1.5 writes KB and MB)
    | Non-releasable memory |    1790 MiB | ...

The figures come from integer division, one unit per metric: "14336 MiB" stands for anything up to
14337 MiB, so the slack is one whole unit. Only the `all` rows are read. Where several devices are
shown the one that reserves most speaks; of several tables of one device, the one nearest to the
failure. Where the failure's own message states allocated bytes, the table does not (it is of
another moment): then it adds what the message lacks.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, Amount, bytes_fact, derived, stated
from oomdoctor.evidence.moment import failure_index, message_states_balance, nearest_to_failure
from oomdoctor.model.core import Reading
from oomdoctor.units import unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = ("memory summary, device", "allocated memory ", "reserved memory ", "malloc retries")
CURRENT = {
    "allocated memory": "torch.allocated",
    "active memory": "torch.active",
    "requested memory": "torch.requested_live",
    "reserved memory": "torch.reserved",
    "non-releasable memory": "torch.non_releasable",
}
PEAK = {"allocated memory": "torch.peak_allocated", "reserved memory": "torch.peak_reserved"}
OF_THE_MESSAGE = ("torch.allocated", "torch.reserved")


class _Table:
    """One table while its rows are read: amounts by fact key, counters by fact key."""

    __slots__ = ("amounts", "counts", "device", "order")

    def __init__(self, *, order: int, device: str) -> None:
        self.order = order
        self.device = device
        self.amounts: dict[str, Amount] = {}
        self.counts: dict[str, tuple[int, Quote]] = {}


@cache
def _title() -> re.Pattern[str]:
    return re.compile(r"memory summary, device ID\s*(\d+)", re.IGNORECASE)


@cache
def _counters() -> re.Pattern[str]:
    return re.compile(
        r"\w+ OOMs:\s*(?P<ooms>\d+)\s*\|\s*\w*malloc retries:\s*(?P<retries>\d+)", re.IGNORECASE
    )


@cache
def _row() -> re.Pattern[str]:
    return re.compile(
        r"(?P<metric>Allocated|Active|Requested|\w+ reserved|Non-releasable) memory\s*\|"
        r"\s*(?P<now>-?\d+)\s*(?P<now_unit>[KMGTP]?i?B)\s*"
        r"(?:\|\s*(?P<peak>-?\d+)\s*(?P<peak_unit>[KMGTP]?i?B))?"
    )


def read(document: Document) -> Reading:
    """Read all tables, and return the facts of the one that belongs to the failure."""
    tables = _tables(document)
    failure = failure_index(document)
    last = nearest_to_failure(tables, order=lambda table: table.order, failure=failure)
    if last is None:
        return Reading()
    by_device = {device: _of_device(tables, device, failure) for device in _devices(tables)}
    chosen = max(by_device.values(), key=_reserved_bytes)
    facts = _facts(chosen, message_has_balance=message_states_balance(document))
    return Reading(facts=tuple(facts), closes=("memory-summary",))


def _devices(tables: list[_Table]) -> list[str]:
    return list(dict.fromkeys(table.device for table in tables))


def _of_device(tables: list[_Table], device: str, failure: int | None) -> _Table:
    own = [table for table in tables if table.device == device]
    chosen = nearest_to_failure(own, order=lambda table: table.order, failure=failure)
    return own[-1] if chosen is None else chosen


def _reserved_bytes(table: _Table) -> int:
    said = table.amounts.get("torch.reserved") or table.amounts.get("torch.allocated")
    return -1 if said is None else said.bytes


def _tables(document: Document) -> list[_Table]:
    tables: list[_Table] = []
    for index, line in enumerate(document.lines):
        if "|" not in line.text or len(line.text) > MAX_TABLE_LINE:
            continue
        title = _title().search(line.text)
        if title is not None:
            tables.append(_Table(order=index, device=title[1]))
            continue
        _take_counters(document, line, index, tables)
        _take_row(document, line, index, tables)
    return [table for table in tables if table.amounts or table.counts]


def _take_counters(document: Document, line: LogLine, index: int, tables: list[_Table]) -> None:
    found = _counters().search(line.text) if "OOMs" in line.text else None
    if found is None:
        return
    if not tables or tables[-1].counts or tables[-1].amounts:
        tables.append(_Table(order=index, device=""))
    counts = tables[-1].counts
    for key, group in (("torch.oom_count", "ooms"), ("torch.alloc_retries", "retries")):
        counts[key] = (int(found[group]), document.quote(line, *found.span()))


def _take_row(document: Document, line: LogLine, index: int, tables: list[_Table]) -> None:
    found = _row().search(line.text) if "memory" in line.text else None
    if found is None:
        return
    metric = found["metric"].lower()
    name = ("reserved" if metric.endswith(" reserved") else metric) + " memory"
    if not tables or CURRENT[name] in tables[-1].amounts:
        tables.append(_Table(order=index, device=tables[-1].device if tables else ""))
    amounts = tables[-1].amounts
    now = _amount(document, line, found, group="now")
    if now is not None:
        amounts[CURRENT[name]] = now
    peak = _amount(document, line, found, group="peak")
    if peak is not None and name in PEAK:
        amounts[PEAK[name]] = peak


def _amount(
    document: Document, line: LogLine, found: re.Match[str], *, group: str
) -> Amount | None:
    """Return a printed figure, which was cut to whole units; negative ones cannot be."""
    unit = found[f"{group}_unit"]
    scale = unit_bytes(unit) if unit else None
    if scale is None or int(found[group]) < 0:
        return None
    return Amount(
        bytes=int(found[group]) * scale,
        slack_bytes=scale if scale > 1 else 0,
        quote=document.quote(line, found.start(), found.end()),
    )


def _facts(table: _Table, *, message_has_balance: bool) -> Iterator[Fact]:
    for key, said in table.amounts.items():
        if not (message_has_balance and key in OF_THE_MESSAGE):
            yield bytes_fact(key, said)
    active, allocated = table.amounts.get("torch.active"), table.amounts.get("torch.allocated")
    if active is not None and allocated is not None and active.bytes >= allocated.bytes:
        yield derived(
            "torch.awaiting_free",
            active.bytes - allocated.bytes,
            active.quote,
            allocated.quote,
            source="Active - Allocated of one memory_summary",
            slack=max(active.slack_bytes, allocated.slack_bytes),
        )
    for key, (count, quote) in table.counts.items():
        yield stated(key, count, quote)
