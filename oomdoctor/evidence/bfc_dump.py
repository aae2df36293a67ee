"""The dump of a BFC allocator that ran out (TensorFlow, JAX): limit, use, chunks.

    Bin (268435456):  Total Chunks: 3, Chunks in use: 2. 1.20GiB allocated for chunks. ...
    Chunk at 0x7f5a3e000000 of size 488374272 next 71
    4 Chunks of size 488374272 totalling 1.82GiB
    Sum Total of in-use chunks: 3.96GiB
    total_region_allocated_bytes_: 4928097280 memory_limit_: 4928097484 available bytes: 204 ...
    Stats:
    Limit:                      4928097484
    InUse:                      4248542720
    MaxInUse:                   4248542720
    NumAllocs:                        1040
    MaxAllocSize:                151781376
    LargestFreeBlock:                    0        (newer; the newest print 89.77GiB and so on)

Every failed request prints the whole dump again: the last one before the error counts. Dumps of
`cuda_host_bfc` are about pinned main memory and are left out.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Reading
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("limit:", "in-use chunks", "memory_limit_", "chunks of size")
MOST_GROUPS = 8
LONGEST = 500
_STATS = {
    "limit": "bfc.limit",
    "inuse": "bfc.in_use",
    "maxinuse": "bfc.max_in_use",
    "maxallocsize": "bfc.max_alloc",
    "largestfreeblock": "bfc.largest_free",
}
_LITERALS = (
    *(f"{name}:" for name in _STATS),
    "in-use chunks",
    "memory_limit_",
    "chunks of size",
    "ran out of memory trying",
)


@cache
def _stat() -> re.Pattern[str]:
    return re.compile(
        r"(?:^|[\s\]])(Limit|InUse|MaxInUse|MaxAllocSize|LargestFreeBlock):\s+"
        r"(\d[\d.]*\s?(?:[KMGT]i?B|B)?)(?!\S)"
    )


@cache
def _sum() -> re.Pattern[str]:
    return re.compile(r"Sum Total of in-use chunks: (\d[\d.]*[KMGT]?i?B?)")


@cache
def _region() -> re.Pattern[str]:
    return re.compile(r"memory_limit_: (\d[\d.]*(?:[KMGT]i?B)?)")


@cache
def _group() -> re.Pattern[str]:
    return re.compile(r"\b(\d+) Chunks? of size (\d+) totalling (\d[\d.]*[KMGT]?i?B)")


def read(document: Document) -> Reading:
    """Return the figures of the last dump of a device's pool before its error."""
    dumps = _dumps(document)
    facts: dict[str, Fact] = {}
    for dump in dumps:
        figures = {fact.key: fact for line in dump for fact in _figures(document, line)}
        figures |= {fact.key: fact for fact in _groups(document, dump)}
        # an error prints again what a warning's dump left out
        facts = figures if "bfc.in_use" in figures else facts | figures
    return Reading(facts=tuple(facts.values()))


def _dumps(document: Document) -> list[list[LogLine]]:
    """Return the telling lines of each dump of a device's pool."""
    dumps: list[list[LogLine]] = [[]]
    on_host = False
    haystack = haystack_of(document)
    for index in haystack.lines_with(_LITERALS):
        line = document.lines[index]
        if len(line.text) > LONGEST:
            continue
        if "ran out of memory trying" in line.text:
            on_host = "host_bfc" in line.text
            dumps.append([])
        elif not on_host:
            dumps[-1].append(line)
    return dumps


def _figures(document: Document, line: LogLine) -> Iterator[Fact]:
    for key, pattern in (("bfc.in_use", _sum()), ("bfc.limit", _region())):
        found = pattern.search(line.text)
        if found is not None:
            yield from _size_fact(document, line, found, key=key, group=1)
    for found in _stat().finditer(line.text):
        key = _STATS[found[1].lower()]
        yield from _size_fact(document, line, found, key=key, group=2)


def _size_fact(
    document: Document, line: LogLine, found: re.Match[str], *, key: str, group: int
) -> Iterator[Fact]:
    text = found[group]
    size = parse_size(f"{text} B" if text.isdecimal() else text)
    # a pool of the driver states no limit of its own as 0
    if size is not None and (size.bytes > 0 or key != "bfc.limit"):
        quote = document.quote(line, found.start(1), found.end())
        yield stated(key, size.bytes, quote, slack=size.slack_bytes)


def _groups(document: Document, dump: list[LogLine]) -> Iterator[Fact]:
    """Yield the sizes of chunk that take most of the pool."""
    found = [(line, match) for line in dump if (match := _group().search(line.text)) is not None]
    rows = sorted(
        ((int(match[1]) * int(match[2]), line, match) for line, match in found),
        key=lambda row: -row[0],
    )[:MOST_GROUPS]
    if not rows:
        return
    quotes = [document.quote(line, *match.span()) for _, line, match in rows]
    listed = "\n".join(f"{match[1]} x {match[2]}" for _, _, match in rows)
    yield stated("bfc.chunks", listed, *quotes)
    yield stated("bfc.largest_group", rows[0][0], quotes[0])
    yield stated("bfc.largest_group_chunks", int(rows[0][2][1]), quotes[0])
