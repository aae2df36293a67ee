"""Cards, their sizes and numbers as people write them: `8x H100-80GB`, `2 nodes x 8 GPUs of 80 GB`.

RTX 4090, bs 4, seq 2048, 24GB        one card by name, its size at the end
2 x V100 16GB, tensor_parallel_size 2
24 GB GPU, 15 GB RAM                  what kind of memory is said by the word behind it
NVIDIA H100 80GB HBM3 MIG 2g.20gb     a slice of a card
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs.claims import Claim
from oomdoctor.record import NamedTuple
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain

TOTAL_SLACK = 0.03  # "80GB" is 79.1 GiB for torch and 79.6 GiB for nvidia-smi
_WORDS = "gpu gb mib rtx gtx 100 200 mig ram 90 80 60 70 gfx node t4 l4 40 a10 a30 titan mi cards"
HINTS = frozenset(_WORDS.split())
_NAME = r"""
(?P<name>(?:(?:NVIDIA|GeForce|Tesla|Quadro|AMD|Radeon|Instinct|Intel|Ascend|Huawei)[\s_-]+)*
(?:RTX[\s_-]*(?:PRO[\s_-]*)?A?\d{4}(?:[\s_-]*(?:Ti|SUPER|Ada|Blackwell|D)\b)*
|GTX[\s_-]*\d{3,4}(?:[\s_-]*(?:Ti|SUPER)\b)*|TITAN[\s_-]*(?:RTX|V|Xp|X)|RX[\s_-]*\d{4}(?:[\s_-]*XTX?)?
|A100|A800|A40|A30|A16|A10G?|H100|H200|H800|H20|B100|B200|B300|GB200|GB300|GH200|V100S?|P100|P40
|T4G?|L40S?|L4|L20|K80|M40|M60|A6000|A5000|A4500|A4000|MI\d{2,3}[AX]?|910[ABC]\d?
|(?:1080|2060|2070|2080|3060|3070|3080|3090|4060|4070|4080|4090|5060|5070|5080|5090)
(?:[\s_-]*(?:Ti|SUPER)\b)*))(?!s?[A-Za-rt-z0-9]|\.\d)
"""
_SIZE = r"(?P<size>\d{1,6}(?:\.\d+)?\s?(?:GiB|GB|MiB|MB|G))(?![A-Za-z0-9])"


class Found(NamedTuple):
    """A claim with the columns (0-based) of the words that make it."""

    claim: Claim
    start: int
    end: int


@cache
def _cards() -> re.Pattern[str]:
    count = r"(?:(?<![\w.])(?P<count>\d{1,4})\s*(?:[xX\u00d7*]\s*|\s))?"
    form = r"(?:[\s_-]*(?:SXM\d?|PCIe|NVL|HBM\d\w?|OAM))*"
    after = r"(?:\s*[xX\u00d7]\s*(?P<after>\d{1,3})(?![\w.]))?"
    behind = rf"(?:{form}[\s_(-]*(?:with\s+|of\s+)?{_SIZE})?{after}"
    return re.compile(
        rf"(?<![A-Za-z/_.])(?<![A-Za-z]-){count}(?<![A-WYZa-wyz/_.-]){_NAME}s?{behind}",
        re.VERBOSE | re.IGNORECASE,
    )


@cache
def _card_size() -> re.Pattern[str]:
    card = r"(?:VRAM|GPUs?|cards?|devices?|gpu\s+memory|video\s+memory|of\s+VRAM)"
    return re.compile(
        rf"(?<![\w.]){_SIZE}[\s-]*(?:NVIDIA\s+|AMD\s+|of\s+)?{card}(?![A-Za-z])"
        rf"|(?:VRAM|GPUs?|cards?)\s*(?:of|with|:|=|\()\s*{_SIZE.replace('size', 'size2')}",
        re.IGNORECASE,
    )


@cache
def _host_size() -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.]){_SIZE}\s*(?:of\s+)?(?:system\s+|host\s+|CPU\s+|main\s+)?(?:RAM|memory\s+host)(?![A-Za-z])"
        rf"|(?<!V)(?:RAM|host\s+memory|host_ram)\s*[:=]?\s*{_SIZE.replace('size', 'size2')}",
        re.IGNORECASE,
    )


@cache
def _numbers() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?<![\w.])(?P<nodes>\d{1,4})\s*(?:[xX\u00d7]\s*)?nodes?(?:\s*[xX\u00d7,]\s*|\s+(?:of|with)\s+|\s+)?)?"
        r"(?<![\d.])(?P<gpus>\d{1,4})\s*(?:[xX\u00d7]\s*)?(?:GPUs?|cards)(?![A-Za-z])",
        re.IGNORECASE,
    )


@cache
def _mig() -> re.Pattern[str]:
    return re.compile(r"(?<![\w.])\d{1,2}g\.(?P<size>\d{1,3}gb)(?![A-Za-z0-9])", re.IGNORECASE)


def find(text: str) -> list[Found]:
    """Return what a line of free text says about cards and memory, in the order of the line."""
    low = text.lower()
    if not any(hint in low for hint in HINTS) or len(text) > 4000:
        return []
    found = [*_slices(text), *_named(text), *_sized(text), *_counted(text), *_compiled_for(text)]
    seen: set[str] = set()
    kept = []
    for one in found:
        if one.claim.key not in seen:
            seen.add(one.claim.key)
            kept.append(one)
    return kept


def card(value: Plain) -> Iterator[Claim]:
    """Read a value that names a card: `gpu: h100`, `device: NVIDIA A100-SXM4-80GB`."""
    if isinstance(value, str):
        yield from (one.claim for one in find(value))


def _slices(text: str) -> Iterator[Found]:
    for hit in _mig().finditer(text):
        yield Found(Claim("gpu.mig", value=True), *hit.span())
        size = _total("gpu.mig_slice", hit["size"], share=0.08)
        if size is not None:
            yield Found(size, *hit.span("size"))
            total = size._replace(key="gpu.total")
            yield Found(total, *hit.span("size"))


def _named(text: str) -> Iterator[Found]:
    pending = _loose_size(text)
    for hit in _cards().finditer(text):
        name = hit["name"].strip(" -_")
        if name.isdecimal() and not hit["count"] and not _alone(text, hit):
            continue
        yield Found(Claim("gpu.name", name), *hit.span("name"))
        count = hit["count"] or hit["after"]
        if count and 1 <= int(count) <= 4096:
            where = hit.span("count") if hit["count"] else hit.span("after")
            yield Found(Claim("gpu.count", int(count)), *where)
        size = _total("gpu.total", hit["size"]) if hit["size"] else None
        if size is not None:
            yield Found(size, *hit.span("size"))
        elif pending is not None:
            yield pending


def _alone(text: str, hit: re.Match[str]) -> bool:
    """Say whether a bare number such as 4090 stands where a card is named, not a value."""
    before = text[: hit.start("name")].rstrip()
    return (
        not before
        or before[-1] in ",;(#+"
        or before.lower().endswith(("gpu", "on", "an", " a", "single", "one", "my"))
    )


def _sized(text: str) -> Iterator[Found]:
    for hit in _card_size().finditer(text):
        group = "size" if hit["size"] else "size2"
        size = _total("gpu.total", hit[group])
        if size is not None:
            yield Found(size, *hit.span(group))
    for hit in _host_size().finditer(text):
        group = "size" if hit["size"] else "size2"
        size = _total("host.ram_total", hit[group])
        if size is not None:
            yield Found(size, *hit.span(group))


def _counted(text: str) -> Iterator[Found]:
    for hit in _numbers().finditer(text):
        gpus = int(hit["gpus"])
        if not 1 <= gpus <= 4096:
            continue
        yield Found(Claim("gpu.count", gpus), *hit.span("gpus"))
        if hit["nodes"]:
            ranks = Claim("dist.world_size", gpus * int(hit["nodes"]), 0, "nodes x cards per node")
            yield Found(ranks, *hit.span())


def _compiled_for(text: str) -> Iterator[Found]:
    at = text.find("gfx")
    name = text[at:].split(",", maxsplit=1)[0].split(maxsplit=1)[0].strip(".;:)") if at >= 0 else ""
    if name[3:6].isdecimal() or name[3:4].isdecimal():
        yield Found(Claim("gpu.architecture", name), at, at + len(name))


@cache
def _loose() -> re.Pattern[str]:
    return re.compile(rf"(?:^|[,;(|/])\s*{_SIZE}\s*(?=$|[,;)|/])")


def _loose_size(text: str) -> Found | None:
    """Find a size that stands as an item of its own: `RTX 4090, bs 4, 24GB`."""
    hits = list(_loose().finditer(text))
    if len(hits) != 1:
        return None
    size = _total("gpu.total", hits[0]["size"])
    return None if size is None else Found(size, *hits[0].span("size"))


def _total(key: str, written: str, *, share: float = TOTAL_SLACK) -> Claim | None:
    size = parse_size(written)
    if size is None or not 2**28 <= size.bytes <= 2**46:
        return None
    return Claim(key, size.bytes, max(size.slack_bytes, int(size.bytes * share)))
