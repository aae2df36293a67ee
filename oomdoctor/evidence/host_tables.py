"""Tables about the host: free, /proc/meminfo, df of the shared-memory mount, ulimit.

                   total        used        free      shared  buff/cache   available
    Mem:           2.0Ti       325Gi       922Gi        13Gi       780Gi       1.7Ti
    Mem:          515834      120034      300120         512       95680      391200   (free -m)
    MemAvailable:   400589212 kB
    Filesystem      Size  Used Avail Use% Mounted on
    shm              64M     0   64M   0% /dev/shm
    Swap:           2.0Gi          0B       2.0Gi
    SwapTotal:       2097148 kB
    max locked memory           (kbytes, -l) 65536
    open files                          (-n) 1024
    virtual memory              (kbytes, -v) 16777216
    vm.overcommit_memory = 2

`free` without units tells by its command line or, failing that, by its size: a machine that trains
has 4 GiB to 4 TiB. `df -h` rounds up, so its slack is a whole unit.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, first_of_each, flag, stated
from oomdoctor.evidence.moment import at_failure, failure_index
from oomdoctor.model.core import Reading
from oomdoctor.units import size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine
    from oomdoctor.units import Size

SHM = "/dev/shm"  # noqa: S108 - the mount's name in a table, no file is made
ANCHORS = (
    *("mem:", "memtotal:", "memavailable:", "swaptotal:", SHM),
    *("max locked memory", "open files", "kbytes, -v)", "overcommit_memory"),
)
FIGURE = r"\d+(?:\.\d+)?(?:[KMGTP]i?B?|B)?"
FREE_SWITCH = {"-k": 1 << 10, "-m": 1 << 20, "-g": 1 << 30, "-b": 1}
DF_BLOCK = 1 << 10


@cache
def _memory_row() -> re.Pattern[str]:
    return re.compile(
        rf"\s*Mem:\s+(?P<total>{FIGURE})\s+{FIGURE}\s+{FIGURE}"
        rf"(?:\s+{FIGURE}\s+{FIGURE}\s+(?P<available>{FIGURE}))?"
    )


@cache
def _meminfo() -> re.Pattern[str]:
    return re.compile(r"\b(?P<of>Mem|Swap)(?P<what>Total|Available|Free):\s+(?P<count>\d+) kB")


@cache
def _swap_row() -> re.Pattern[str]:
    return re.compile(rf"\s*Swap:\s+(?P<total>{FIGURE})\s+{FIGURE}\s+(?P<free>{FIGURE})\s*$")


@cache
def _mount() -> re.Pattern[str]:
    return re.compile(
        rf"\S+\s+(?P<total>{FIGURE})\s+{FIGURE}\s+(?P<available>{FIGURE})\s+\d+%\s+/dev/shm\b"
    )


@cache
def _limits() -> re.Pattern[str]:
    return re.compile(
        r"(?P<what>max locked memory|open files|virtual memory)\s+\((?:kbytes, )?-[lnv]\)\s+"
        r"(?P<count>\d+|unlimited)"
    )


def read(document: Document) -> Reading:
    """Return the figures that stand nearest before the failure."""
    seen: dict[str, list[tuple[int, Fact]]] = {}
    switch: int | None = None
    block = DF_BLOCK
    whole = ""
    for index, line in enumerate(document.lines):
        if len(line.text) > MAX_TABLE_LINE:
            continue
        command = re.search(r"\bfree\s+(-[bkmg])\b", line.text) if "free " in line.text else None
        switch = FREE_SWITCH[command[1]] if command is not None else switch
        block = _block_unit(line.text) or block
        if not _speaks(line.text):
            continue
        row = _memory_row().match(line.text) if "Mem:" in line.text else None
        whole = row["total"] if row is not None else whole
        for fact in (
            *_facts_of(document, line, switch=switch, block=block),
            *_swap_facts(document, line, unit=_free_unit(whole, switch)),
        ):
            seen.setdefault(fact.key, []).append((index, fact))
    failure = failure_index(document)
    chosen = [
        at_failure(several, order=lambda pair: pair[0], failure=failure)
        for several in seen.values()
    ]
    return Reading(facts=tuple(pair[1] for pair in chosen if pair is not None))


def _block_unit(text: str) -> int | None:
    found = re.search(r"\b1([KMG])-blocks\b", text) if "-blocks" in text else None
    return unit_bytes(found[1]) if found is not None else None


def _speaks(text: str) -> bool:
    words = ("Mem", "Swap", SHM, "locked memory", "open files", "virtual memory", "overcommit_m")
    return any(word in text for word in words)


def _facts_of(
    document: Document, line: LogLine, *, switch: int | None, block: int
) -> tuple[Fact, ...]:
    return first_of_each(
        [
            *_memory_facts(document, line, switch),
            *_mount_facts(document, line, block),
            *_limit_facts(document, line),
        ]
    )


def _size(figure: str, bare_unit: int) -> Size:
    """Return a figure's bytes; without a unit of its own it counts in `bare_unit`."""
    letters = figure.lstrip("0123456789.")
    return size_of(figure.removesuffix(letters), unit_bytes(letters[:1]) or bare_unit)


def _free_unit(total: str, switch: int | None) -> int:
    """Return the unit of a `free` without units: as commanded, else what makes a sane machine."""
    if switch is not None or not total.isdecimal():
        return switch or 1 << 10
    count = int(total)
    if count < 1 << 11:
        return 1 << 30
    return 1 << 20 if count < 1 << 22 else 1 << 10


def _memory_facts(document: Document, line: LogLine, switch: int | None) -> Iterator[Fact]:
    if "Mem" not in line.text:
        return
    info = _meminfo().search(line.text)
    if info is not None:
        if info["what"] == "Free":
            return  # page cache can be given back: what counts is what is available
        key = f"host.ram_{info['what'].lower()}"
        size = size_of(info["count"], 1 << 10)
        yield stated(key, size.bytes, document.quote(line, *info.span()), slack=size.slack_bytes)
        return
    found = _memory_row().match(line.text)
    if found is None:
        return
    unit = _free_unit(found["total"], switch)
    for what in ("total", "available"):
        if found[what] is not None:
            size = _size(found[what], unit)
            quote = document.quote(line, *found.span())
            yield stated(f"host.ram_{what}", size.bytes, quote, slack=size.slack_bytes)


def _swap_facts(document: Document, line: LogLine, *, unit: int) -> Iterator[Fact]:
    if "Swap" not in line.text:
        return
    info = _meminfo().search(line.text)
    if info is not None and info["of"] == "Swap":
        size = size_of(info["count"], 1 << 10)
        key = f"host.swap_{info['what'].lower()}"
        yield stated(key, size.bytes, document.quote(line, *info.span()), slack=size.slack_bytes)
        return
    found = _swap_row().match(line.text)
    if found is not None:
        for what in ("total", "free"):
            size = _size(found[what], unit)
            quote = document.quote(line, *found.span())
            yield stated(f"host.swap_{what}", size.bytes, quote, slack=size.slack_bytes)


def _mount_facts(document: Document, line: LogLine, block: int) -> Iterator[Fact]:
    found = _mount().search(line.text) if SHM in line.text else None
    if found is None:
        return
    for what in ("total", "available"):
        size = _size(found[what], block)
        quote = document.quote(line, *found.span())
        yield stated(f"host.shm_{what}", size.bytes, quote, slack=2 * size.slack_bytes)


def _limit_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    strict = re.search(r"\bovercommit_memory\s*[:=]\s*(\d)", line.text)
    if strict is not None:
        yield flag("host.overcommit_strict", document.quote(line), value=strict[1] == "2")
    found = _limits().search(line.text)
    if found is None:
        return
    quote = document.quote(line, *found.span())
    if found["what"] == "open files":
        if found["count"].isdecimal():
            yield stated("host.open_files_limit", int(found["count"]), quote)
    elif found["what"] == "virtual memory":
        if found["count"].isdecimal():
            yield stated("host.address_limit", int(found["count"]) << 10, quote)
    elif found["count"].isdecimal():
        yield stated("host.memlock_limit", int(found["count"]) << 10, quote)
    else:
        yield flag("host.memlock_unlimited", quote)
