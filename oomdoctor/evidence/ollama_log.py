"""What ollama prints about where it puts a model: plan per device, layers, main memory, version.

level=INFO source=server.go:138 msg=offload library=cuda layers.requested=-1 layers.model=62
  layers.offload=62 layers.split=31,31 memory.available="[22.8 GiB 11.1 GiB]"
  memory.required.full="31.9 GiB" memory.required.partial="31.9 GiB" memory.required.kv="4.5 GiB"
  memory.required.allocations="[21.2 GiB 10.7 GiB]" memory.weights.total="24.8 GiB"
  memory.graph.full="1.9 GiB" memory.graph.partial="2.3 GiB" projector.weights="1.1 GiB"
msg="model weights" device=CUDA0 size="11.5 GiB"                              (since 0.11)
msg="kv cache" device=CUDA0 size="1.2 GiB"
msg="compute graph" device=CUDA0 size="402.0 MiB"
msg="starting llama server" cmd="/usr/bin/ollama runner --model x --ctx-size 8192 --parallel 4"
msg="system memory" total="62.7 GiB" free="56.0 GiB" free_swap="31.1 GiB"
model requires more system memory (37.5 GiB) than is available (21.4 GiB)
Listening on 127.0.0.1:11434 (version 0.3.6)          ollama version is 0.1.20
6144 MiB VRAM available, loading up to 35 GPU layers                          (before 0.1.21)
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence import wrapped
from oomdoctor.evidence.amounts import derived, flag, stated
from oomdoctor.evidence.engine_lines import Pattern
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Reading
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = (
    "layers.offload",
    "memory.available",
    "memory.required",
    "ollama version",
    "ollama_",
    "(version ",
    "ollama runner",
    "more system memory",
    'msg="model weights"',
    'msg="kv cache"',
    'msg="compute graph"',
    "vram available, loading up to",
    "system memory",
)
LONGEST = 6000
_SIZE = r"[\d.]+ ?[KMGT]?i?B"
_COUNTS = (
    Pattern("serve.gpu_layers", "layers.offload=", r"\blayers\.offload=(?P<n>\d+)"),
    Pattern("serve.model_layers", "layers.model=", r"\blayers\.model=(?P<n>\d+)"),
    Pattern("serve.max_len", "--ctx-size ", r"--ctx-size (?P<n>\d+)"),
    Pattern("serve.parallel", "--parallel ", r"--parallel (?P<n>\d+)"),
    Pattern("serve.gpu_layers", "--n-gpu-layers ", r"--n-gpu-layers (?P<n>\d+)"),
    Pattern("serve.parallel", "ollama_num_parallel", r"OLLAMA_NUM_PARALLEL[:=](?P<n>[1-9]\d*)"),
    Pattern("serve.gpu_layers", "loading up to ", r"loading up to (?P<n>\d+) GPU layers"),
)
_MORE = "requires more system memory ("
_SYSTEM = 'msg="system memory" total="'
_SIZES = (
    Pattern("serve.kv_cache", "memory.required.kv=", rf'memory\.required\.kv="(?P<n>{_SIZE})"'),
    Pattern("serve.weights", "memory.weights.total=", rf'memory\.weights\.total="(?P<n>{_SIZE})"'),
    Pattern("serve.compute_buffer", "memory.graph.full=", rf'memory\.graph\.full="(?P<n>{_SIZE})"'),
    Pattern("serve.host_required", _MORE, rf"requires more system memory \((?P<n>{_SIZE})\)"),
    Pattern(
        "serve.host_available",
        "than is available (",
        rf"more system memory .{{0,30}}than is available \((?P<n>{_SIZE})\)",
    ),
    Pattern("host.ram_total", _SYSTEM, rf'{_SYSTEM}(?P<n>{_SIZE})"'),
    Pattern("serve.host_available", _SYSTEM, rf'{_SYSTEM}[^"]+" free="(?P<n>{_SIZE})"'),
)
_PARTS = {
    "model weights": "serve.weights",
    "kv cache": "serve.kv_cache",
    "compute graph": "serve.compute_buffer",
}
_VERSION = r"(?:ollama version is|Listening on \S+ \(version) v?(?P<n>\d+\.\d+\.\d+)"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def read(document: Document) -> Reading:
    """Return what the last plan says."""
    found: dict[str, Fact] = {}
    parts: dict[tuple[str, str], tuple[int, LogLine]] = {}
    for index in haystack_of(document).telling(ANCHORS):
        line = document.lines[index]
        if len(line.text) <= LONGEST:
            _part_of(line, parts)
            for fact in _facts_of(document, line):
                found[fact.key] = fact
    for fact in _cut_facts(document):
        found.setdefault(fact.key, fact)
    for key in dict.fromkeys(_PARTS.values()):
        sizes = [(size, line) for (kind, _), (size, line) in parts.items() if kind == key]
        if sizes:
            quotes = [document.quote(line) for _, line in sizes[:4]]
            found[key] = stated(key, sum(size for size, _ in sizes), *quotes, slack=1 << 26)
    return Reading(facts=tuple(found.values()))


def _cut_facts(document: Document) -> Iterator[Fact]:
    """Yield the figures of lines that were cut into several."""
    for one in (*_COUNTS, *_SIZES):
        cut = wrapped.last(document, one.literal, one.source)
        if cut is not None:
            yield from _figure(one, cut.match, cut.quotes())


def _figure(one: Pattern, hit: re.Match[str], quotes: Sequence[Quote]) -> Iterator[Fact]:
    if one in _COUNTS:
        yield stated(one.key, int(hit["n"]), *quotes)
        return
    size = parse_size(hit["n"])
    if size is not None:
        yield stated(one.key, size.bytes, *quotes, slack=size.slack_bytes)


def _part_of(line: LogLine, parts: dict[tuple[str, str], tuple[int, LogLine]]) -> None:
    """Take the bytes of one kind on one device; main memory is no device."""
    hit = _compiled(
        rf'msg="(?P<kind>model weights|kv cache|compute graph)".{{0,60}}?'
        rf'\b(?:device|buffer_type|buffer)=(?P<at>\w+) size="(?P<n>{_SIZE})"'
    ).search(line.text)
    size = parse_size(hit["n"]) if hit is not None else None
    if hit is not None and size is not None and not hit["at"].startswith("CPU"):
        parts[_PARTS[hit["kind"]], hit["at"]] = (size.bytes, line)


def _facts_of(document: Document, line: LogLine) -> Iterator[Fact]:
    lowered = line.text.lower()
    for one in (*_COUNTS, *_SIZES):
        hit = one.search(line.text) if one.literal in lowered else None
        if hit is not None:
            yield from _figure(one, hit, (document.quote(line, *hit.span()),))
    hit = _compiled(_VERSION).search(line.text)
    if hit is not None:
        yield stated("env.ollama", hit["n"], document.quote(line, *hit.span()))
    hit = _compiled(r"OLLAMA_FLASH_ATTENTION[:=](?P<on>true|false|1|0)\b|--flash-attn\b").search(
        line.text
    )
    if hit is not None:
        on = hit["on"] not in ("false", "0")
        yield stated("serve.flash_attention", on, document.quote(line, *hit.span()))
    if "projector.weights" in line.text or "--mmproj" in line.text:
        yield flag("serve.vision", document.quote(line))
    yield from _plan_of(document, line)


def _plan_of(document: Document, line: LogLine) -> Iterator[Fact]:
    """Compare what is planned with what is free, device by device."""
    available = _listed(line.text, "memory.available")
    planned = _listed(line.text, "memory.required.allocations") or _whole(line.text)
    if not available:
        return
    quote = document.quote(line)
    yield stated("serve.devices", len(available), quote)
    yield stated("serve.available", sum(available), quote, slack=1 << 26)
    if len(planned) != len(available):
        return
    yield stated("serve.required", sum(planned), quote, slack=1 << 26)
    source = "planned over available bytes of a device"
    shares = [need / room for need, room in zip(planned, available, strict=True) if room > 0]
    if shares:
        yield derived("serve.fullest_share", max(shares), quote, source=source, slack=0.01)
    if len(shares) > 1:
        yield derived("serve.emptiest_share", min(shares), quote, source=source, slack=0.01)


def _whole(text: str) -> list[int]:
    """Return what is required of the only device, where no list tells it device by device."""
    hit = _compiled(rf'memory\.required\.full="(?P<n>{_SIZE})"').search(text)
    size = None if hit is None else parse_size(hit["n"])
    return [] if size is None else [size.bytes]


def _listed(text: str, key: str) -> list[int]:
    """Return the sizes of `key="[22.8 GiB 11.1 GiB]"` in bytes."""
    hit = _compiled(rf'{re.escape(key)}="\[(?P<list>[^\]]*)\]"').search(text)
    if hit is None:
        return []
    sizes = [parse_size(one) for one in _compiled(_SIZE).findall(hit["list"])]
    return [size.bytes for size in sizes if size is not None]
