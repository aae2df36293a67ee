"""Figures of PyTorch's allocator outside of tables: statistics dumps and lines people print.

    {'active_bytes.all.current': 15032385536, 'allocated_bytes.all.peak': 16106127360, ...}
    OrderedDict([('allocated_bytes.all.current', 15032385536), ('num_alloc_retries', 2), ...])
    torch.cuda.memory_allocated(): 15032385536
    after del: memory_allocated=0 MB memory_reserved=48606 MB
    allocated: 10.2 GB reserved: 12.5 GB, max allocated: 14.1 GB
    MA 11.76 GB         Max_MA 11.76 GB         CA 11.77 GB         Max_CA 12 GB
    mem_get_info: total=81008 MB free=32402 MB
    torch.cuda.mem_get_info(): (34359738368, 85899345920)

Of repeated figures the last one before the failure counts (peaks too: they can be reset). A figure
without a unit is taken for bytes only where it is a multiple of 512, as every figure of the
allocator is. Where the failure's message states allocated bytes itself, only what it lacks is read.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import Amount, bytes_fact, derived, stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.moment import at_failure, failure_index, message_states_balance
from oomdoctor.model.core import Fact, Reading
from oomdoctor.record import NamedTuple
from oomdoctor.units import SIZE_PATTERN, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, LogLine

ANCHORS = (
    "_bytes.all.",
    "num_alloc_retries",
    "num_ooms",
    "memory_allocated",
    "memory_reserved",
    "memory_cached",
    "mem_get_info",
    "allocated",
    "reserved",
    "max_ma",
)
STATS = {
    "allocated_bytes.all.current": "torch.allocated",
    "allocated_bytes.all.peak": "torch.peak_allocated",
    "active_bytes.all.current": "torch.active",
    "reserved_bytes.all.current": "torch.reserved",
    "reserved_bytes.all.peak": "torch.peak_reserved",
    "requested_bytes.all.current": "torch.requested_live",
    "inactive_split_bytes.all.current": "torch.non_releasable",
    "num_alloc_retries": "torch.alloc_retries",
    "num_ooms": "torch.oom_count",
}
DEEPSPEED = {
    "MA": "torch.allocated",
    "Max_MA": "torch.peak_allocated",
    "CA": "torch.reserved",
    "Max_CA": "torch.peak_reserved",
}
OF_THE_MESSAGE = ("torch.allocated", "torch.reserved")
OTHER_MEMORY = ("out of memory", "failed to allocate", "mps allocated", "cpu", "host", "ram ")
WORDS = (".all.", "num_", "mem_get_info", "max_ma", "allocated", "reserved", "cached")
CHUNK = 512
BARE_FLOOR = 1 << 20
LONGEST = 4000


class Figure(NamedTuple):
    """A fact with the place in the document where it stands."""

    order: int
    fact: Fact


@cache
def _stat() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in STATS)
    return re.compile(rf"(?P<name>{names})['\"]?\s*[:,=]\s*(?P<count>\d+)")


@cache
def _printed() -> re.Pattern[str]:
    return re.compile(
        r"(?<!un)(?<!pre)(?<!pre-)(?<!de)(?<!\bre)"
        r"(?P<what>allocated|reserved|cached)(?:[ _](?:memory|mem|bytes|kb|mb|gb))?"
        rf"(?:\(\w*\))?[\"']?\s*(?:[:=]\s*|\s)(?P<size>{SIZE_PATTERN})",
        re.IGNORECASE,
    )


@cache
def _bare() -> re.Pattern[str]:
    return re.compile(
        r"(?P<max>max_)?memory_(?P<what>allocated|reserved|cached)(?:\([\w:'\"]*\))?[\"']?\s*[:=]?\s*"
        r"(?P<count>\d[\d,]*)(?![\d.,]*\s*[A-Za-z/*]|[\d,]*\.\d)"
    )


@cache
def _deepspeed() -> re.Pattern[str]:
    return re.compile(r"\b(?P<name>(?:Max_)?[MC]A) (?P<size>\d+(?:\.\d+)? GB)")


@cache
def _info_words() -> re.Pattern[str]:
    return re.compile(rf"(?P<what>total|free)\s*[:=]?\s*(?P<size>{SIZE_PATTERN})", re.IGNORECASE)


@cache
def _info_pair() -> re.Pattern[str]:
    return re.compile(r"mem_get_info[^\n]{0,30}?\(\s*(?P<free>\d{6,})\s*,\s*(?P<total>\d{6,})\s*\)")


def read(document: Document) -> Reading:
    """Return the figures that stand nearest before the failure, one per fact."""
    figures: dict[str, list[Figure]] = {}
    failure = failure_index(document)
    for index in haystack_of(document).before(failure, WORDS):
        for fact in _facts_of_line(document, document.lines[index]):
            figures.setdefault(fact.key, []).append(Figure(index, fact))
    skipped = OF_THE_MESSAGE if message_states_balance(document) else ()
    chosen = [
        at_failure(several, order=lambda figure: figure.order, failure=failure)
        for key, several in figures.items()
        if key not in skipped
    ]
    return Reading(facts=tuple(figure.fact for figure in chosen if figure is not None))


def _facts_of_line(document: Document, line: LogLine) -> Iterator[Fact]:
    text = line.text[:LONGEST]
    yield from _stats(document, line)
    lower = text.lower()
    if "mem_get_info" in lower:
        yield from _device_facts(document, line, text)
    if "Max_MA" in text:
        yield from _deepspeed_facts(document, line, text)
    told = any(word in lower for word in ("allocated", "reserved", "cached"))
    if told and not _is_other(text, lower):
        yield from _printed_facts(document, line, text)


def _stats(document: Document, line: LogLine) -> Iterator[Fact]:
    if not any(name in line.text for name in STATS):
        return
    for found in _stat().finditer(line.text):
        yield stated(STATS[found["name"]], int(found["count"]), document.quote(line, *found.span()))


def _is_other(text: str, lower: str) -> bool:
    """Tell host memory, messages, and the aligned `Reserved    : 649 MiB` of nvidia-smi -q."""
    if any(word in lower for word in OTHER_MEMORY):
        return True
    return re.match(r"\s*Reserved\s{2,}: ", text) is not None


def _sized(document: Document, line: LogLine, found: re.Match[str], *, key: str) -> Iterator[Fact]:
    size = parse_size(found["size"])
    if size is not None and size.bytes >= 0:
        quote = document.quote(line, *found.span())
        said = Amount(bytes=size.bytes, slack_bytes=size.slack_bytes, quote=quote)
        yield bytes_fact(key, said)


def _printed_facts(document: Document, line: LogLine, text: str) -> Iterator[Fact]:
    taken: set[str] = set()
    for found in _printed().finditer(text):
        before = text[max(0, found.start() - 20) : found.start()].lower()
        key = _key(found["what"], peak=_says_peak(before))
        if key not in taken:
            taken.add(key)
            yield from _sized(document, line, found, key=key)
    for found in _bare().finditer(text):
        count = int(found["count"].replace(",", ""))
        key = _key(found["what"], peak=bool(found["max"]))
        if key not in taken and count % CHUNK == 0 and (count == 0 or count >= BARE_FLOOR):
            taken.add(key)
            yield stated(key, count, document.quote(line, *found.span()))


def _key(what: str, *, peak: bool) -> str:
    part = "allocated" if what.lower() == "allocated" else "reserved"
    return f"torch.peak_{part}" if peak else f"torch.{part}"


def _says_peak(before: str) -> bool:
    """Say whether the words directly before (of the same clause) speak of a maximum."""
    clause = re.split(r"[,;|\d]", before)[-1]
    return any(word in clause for word in ("max", "peak", "highest"))


def _deepspeed_facts(document: Document, line: LogLine, text: str) -> Iterator[Fact]:
    for found in _deepspeed().finditer(text):
        yield from _sized(document, line, found, key=DEEPSPEED[found["name"]])


def _device_facts(document: Document, line: LogLine, text: str) -> Iterator[Fact]:
    sizes: dict[str, tuple[int, float]] = {}
    pair = _info_pair().search(text)
    if pair is not None and int(pair["free"]) <= int(pair["total"]):
        for what in ("free", "total"):
            sizes[what] = (int(pair[what]), 0)
    else:
        for found in _info_words().finditer(text):
            size = parse_size(found["size"])
            if size is not None:
                sizes.setdefault(found["what"].lower(), size)
    quote = document.quote(line)
    for what, (count, slack) in sizes.items():
        yield stated(f"gpu.{what}", count, quote, slack=slack)
    if len(sizes) == 2 and sizes["free"][0] <= sizes["total"][0]:
        used = sizes["total"][0] - sizes["free"][0]
        slack = sizes["total"][1] + sizes["free"][1]
        yield derived("gpu.used", used, quote, source="total - free", slack=slack)
