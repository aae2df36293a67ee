r"""What reports tell of the machine: collect_env, ds_report, transformers-cli env, banners.

CUDA used to build PyTorch: 12.1
Nvidia driver version: 535.104.05
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB
- Platform: Linux-5.15.0-113-generic-x86_64-with-glibc2.35       (read by `environment_signs`)
torch cuda version ............... 12.1
shared memory (/dev/shm) size .... 503.55 GB
GPU type: NVIDIA A100-SXM4-80GB
   \\   /|    GPU: Tesla T4. Max memory: 14.748 GB. Platform = Linux.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

LONGEST = 600
_WORDS = (
    *("nvidia driver version", "cuda used to build", "torch cuda version", "cuda toolkit"),
    *("gpu type", "/|", "max memory", "shared memory (", "gpu models and configuration"),
)
SIZES = {"Max memory": "gpu.total", "shared memory (/dev/shm) size": "host.shm_total"}


@cache
def _versions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    number = r"(\d+(?:\.\d+)+)"
    return (
        ("gpu.driver", re.compile(rf"(?i)nvidia driver version:\s*{number}")),
        ("gpu.cuda", re.compile(rf"CUDA used to build PyTorch:\s*{number}")),
        ("gpu.cuda", re.compile(rf"torch cuda version \.{{3,}} {number}")),
        ("gpu.cuda", re.compile(rf"\bCUDA Toolkit\s?[=:] {number}")),
        ("gpu.compute_capability", re.compile(r"\bCUDA\s?[=:] (\d{1,2}\.\d)\. CUDA Toolkit")),
    )


@cache
def _names() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"^[\s>*-]*GPU type:\s*(\S.*?)\s*$"),
        re.compile(r"/\|\s+(?:GPU: )?(\S[^.|]*?)\. (?:Num GPUs|Max memory)"),
    )


@cache
def _numbered() -> re.Pattern[str]:
    return re.compile(r"^[\s>]*GPU (\d+): (\S[^()]*?)\s*$")


@cache
def _size() -> re.Pattern[str]:
    return re.compile(
        r"(Max memory|shared memory \(/dev/shm\) size)\s*[:.]+ (\d+(?:\.\d+)?\s?[KMGT]i?B)"
    )


def machine_facts(document: Document) -> Iterator[Fact]:
    """Yield cards, driver and CUDA versions, and sizes that a report states."""
    listing = -1
    cards: dict[str, tuple[str, Quote]] = {}
    told = frozenset(haystack_of(document).telling(_WORDS))
    for index, line in enumerate(document.lines):
        text = line.text
        if (index not in told and listing < 0) or len(text) > LONGEST:
            continue
        if "GPU models and configuration" in text:
            listing = index
            text = text.partition(":")[2]
        card = _numbered().match(text) if listing >= 0 else None
        if card is not None and index - listing <= len(cards) + 1:
            cards.setdefault(card[1], (card[2], document.quote(line)))
        if index in told:
            yield from _line_facts(document, line)
    yield from _card_facts(cards)


def _card_facts(cards: dict[str, tuple[str, Quote]]) -> Iterator[Fact]:
    if not cards:
        return
    quotes = [quote for _, quote in cards.values()]
    yield stated("gpu.count", len(cards), *quotes)
    names = {name for name, _ in cards.values()}
    if len(names) == 1:
        yield stated("gpu.name", names.pop(), quotes[0])


def _line_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    text = line.text
    if "ersion" in text or "CUDA" in text:
        for key, pattern in _versions():
            found = pattern.search(text)
            if found is not None:
                yield stated(key, found[1], document.quote(line, *found.span()))
    if "GPU type" in text or "/|" in text:
        for pattern in _names():
            found = pattern.search(text)
            if found is not None:
                yield stated("gpu.name", found[1], document.quote(line, *found.span(1)))
    if "ax memory" in text or "shared memory" in text:
        yield from _size_facts(document, line)


def _size_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _size().search(line.text)
    size = parse_size(found[2]) if found is not None else None
    if found is not None and size is not None:
        quote = document.quote(line, *found.span())
        yield stated(SIZES[found[1]], size.bytes, quote, slack=size.slack_bytes)
