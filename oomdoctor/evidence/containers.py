"""What Kubernetes and docker say about a container's memory: its limit, its use, its end.

        Limits:                                        (kubectl describe pod)
          memory:          32Gi
        resources:                                     (kubectl get pod -o yaml)
          limits:
            memory: 24Gi
    "resources": {"limits": {"cpu": "8", "memory": "24Gi"}}
    The node was low on resource: memory. ... Container main was using 41231232Ki, request is 8Gi
    "Memory": 17179869184, "ShmSize": 67108864,        (docker inspect)
    3f9a0c11d2aa   trainer   398.11%   31.9GiB / 32GiB       99.69%    1kB / 0B    (docker stats)

docker states bytes and 0 for "no limit". A running container's row of `docker stats` whose limit
is the whole machine counts all the same: that is what it may use.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, first_of_each, stated
from oomdoctor.model.core import Reading
from oomdoctor.units import parse_size, size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = (
    "limits",
    "low on resource: memory",
    '"memory":',
    '"shmsize":',
    "mem usage / limit",
    "memory.max",
    "memory.limit_in_bytes",
)
_BLOCK = 8
"""Lines behind `Limits:` in which its memory row stands."""
_JSON_LINE = 20_000
_NO_LIMIT = 1 << 50


@cache
def _block_head() -> re.Pattern[str]:
    return re.compile(r"^\s*\"?[Ll]imits\"?:\s*(?:\{\s*)?$")


@cache
def _memory_row() -> re.Pattern[str]:
    return re.compile(
        r"^\s*\"?memory\"?:\s+\"?(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMGTkmgt]i?)?\"?,?\s*$"
    )


@cache
def _inline_limits() -> re.Pattern[str]:
    return re.compile(
        r"\"limits\": ?\{[^{}]{0,200}?\"memory\": ?\"(?P<number>\d+)(?P<unit>[KMGT]i?)?\""
    )


@cache
def _docker_number() -> re.Pattern[str]:
    return re.compile(r"\"(?P<what>Memory|ShmSize)\": ?(?P<count>\d{1,18})\b")


@cache
def _evicted() -> re.Pattern[str]:
    return re.compile(
        r"low on resource: memory\b.*?[Cc]ontainer \S+ was using (?P<used>\d+)(?P<unit>[KMGT]i)?"
    )


@cache
def _stats_row() -> re.Pattern[str]:
    return re.compile(
        r"\d+(?:\.\d+)?%\s+(?P<used>\d+(?:\.\d+)?[KMGT]?i?B) / (?P<limit>\d+(?:\.\d+)?[KMGT]?i?B)"
        r"\s+\d+(?:\.\d+)?%"
    )


@cache
def _cgroup_file() -> re.Pattern[str]:
    return re.compile(r"memory\.(?:max|limit_in_bytes)(?:\s*[:=]\s*|\s+)(?P<count>\d{6,18})\b")


def read(document: Document) -> Reading:
    """Return the memory limit and use of the container that the document speaks of."""
    facts: list[Fact] = []
    block = 0
    in_stats = False
    in_file = False
    for line in document.lines:
        text = line.text
        if len(text) > MAX_TABLE_LINE:
            facts += _json_facts(document, line) if len(text) <= _JSON_LINE else ()
            continue
        if _block_head().match(text):
            block = _BLOCK
        elif block:
            block -= 1
            found = _memory_row().match(text)
            if found is not None:
                facts.append(_sized(document, line, found, "host.group_limit"))
                block = 0
            elif "equests" in text:
                block = 0
        in_stats = in_stats or "MEM USAGE / LIMIT" in text
        facts += _line_facts(document, line, in_stats=in_stats)
        if in_file and text.strip().isdecimal():
            facts += _limit_of_file(document, line, text.strip())
        in_file = text.rstrip().endswith(("memory.max", "memory.limit_in_bytes"))
    return Reading(facts=first_of_each(facts))


def _line_facts(document: Document, line: LogLine, *, in_stats: bool) -> Iterator[Fact]:
    text = line.text
    if '"' in text:
        yield from _json_facts(document, line)
    if "low on resource" in text:
        found = _evicted().search(text)
        if found is not None:
            yield _sized(document, line, found, "host.group_used", group="used")
    if in_stats and " / " in text:
        found = _stats_row().search(text)
        if found is not None:
            quote = document.quote(line, *found.span())
            for what in ("used", "limit"):
                size = parse_size(found[what])
                if size is not None:
                    yield stated(f"host.group_{what}", size.bytes, quote, slack=size.slack_bytes)
    if "memory." in text:
        found = _cgroup_file().search(text)
        if found is not None:
            yield from _limit_of_file(document, line, found["count"])


def _json_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    limits = _inline_limits().search(line.text)
    if limits is not None:
        yield _sized(document, line, limits, "host.group_limit")
    for found in _docker_number().finditer(line.text):
        count = int(found["count"])
        key = "host.shm_total" if found["what"] == "ShmSize" else "host.group_limit"
        if 0 < count < _NO_LIMIT:
            yield stated(key, count, document.quote(line, *found.span()))


def _limit_of_file(document: Document, line: LogLine, count: str) -> Iterator[Fact]:
    if 0 < int(count) < _NO_LIMIT:
        yield stated("host.group_limit", int(count), document.quote(line))


def _sized(
    document: Document, line: LogLine, found: re.Match[str], key: str, *, group: str = "number"
) -> Fact:
    """Return a Kubernetes quantity: `Gi` is a power of 1024, a bare `G` one of 1000."""
    unit = found["unit"] or ""
    scale = unit_bytes(f"{unit[:1]}iB") if unit else 1
    if unit and not unit.endswith("i"):
        scale = 1000 ** ("KMGT".index(unit[0].upper()) + 1)
    size = size_of(found[group], scale or 1)
    quote = document.quote(line, *found.span())
    slack = 0 if scale == 1 else size.slack_bytes
    return stated(key, size.bytes, quote, slack=slack)
