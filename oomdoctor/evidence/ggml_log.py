"""What llama.cpp and programs built on it print: devices, layers, buffers, context, prompt cache.

    ggml_cuda_init: found 1 CUDA devices:
    Device 0: NVIDIA GeForce RTX 3060, compute capability 8.6, VMM: yes
    llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3060) - 11228 MiB free
    load_tensors: offloaded 29/33 layers to GPU
    load_tensors:        CUDA0 model buffer size =  7301.44 MiB
    llm_load_tensors:      CUDA0 buffer size =  3841.45 MiB                              (2024)
    llm_load_tensors: VRAM used: 3617.00 MB                                              (2023)
    llama.go:300: 10240 MiB VRAM available, loading up to 40 GPU layers          (ollama, 2023)
    llama_context: n_ctx         = 131072
    llama_context: n_ctx_per_seq (8192) < n_ctx_train (131072) -- the full capacity ...
    llama_context: flash_attn    = 0
    llama_kv_cache_unified:    CUDA0 KV buffer size =  2048.00 MiB
    llama_context:      CUDA0 compute buffer size =   669.48 MiB
    common_params_fit_impl: projected to use 9216 MiB of device memory vs. 7600 MiB of free ...
    |   - CUDA0 (GTX 1070) | 8192 = 7700 + (9001 = 8814 +     134 +      51) +       -8509 |
    cache state: 41 prompts, 7377.676 MiB (limits: 8192.000 MiB, 32768 tokens, ...)

Buffers of one kind are summed over the devices; `*_Host` and `CPU` lie in main memory.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import derived, flag, stated
from oomdoctor.evidence.ggml_plan import Plan, balance_facts
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Reading
from oomdoctor.units import size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = (
    "buffer size",
    "mib free",
    "_init: found ",
    "layers to gpu",
    "n_ctx",
    "flash_attn",
    "flash-attn",
    "n_seq_max",
    "n_ubatch",
    "kv self size",
    "vram used:",
    "vram available, loading",
    "cache state:",
    "prompt cache is enabled",
    "memory_breakdown",
    "cudamalloc failed",
    "clip_model_load",
    "mib of device memory",
)
LONGEST = 2000
_DEVICE = (
    r"^\s*Device \d+: ([^,]{3,60}), (?:compute capability|gfx|VMM)"
    r"|using device \w+ \(([^()]{3,60}(?:\([A-Z]+\)[^()]{0,40})?)\)(?: \([^)]*\))? - \d+ MiB free"
)
_AFTER_WEIGHTS = ("gallocr", "compute buffer", "kv cache", "in function")
_COUNTS = (
    (r"ggml_\w*init: found (?P<n>\d+) \w+ devices\b", "gpu.count", 1),
    (r"offloaded (?P<n>\d+)/\d+ layers to GPU", "serve.gpu_layers", 0),
    (r"offloaded \d+/(?P<n>\d+) layers to GPU", "serve.model_layers", 1),
    (r"\bn_ctx\s+= (?P<n>\d+)", "serve.max_len", 1),
    (r"\bn_ctx_train\s+= (?P<n>\d+)", "serve.train_context", 1),
    (r"\bn_ctx_train \((?P<n>\d+)\)", "serve.train_context", 1),
    (r"\bn_seq_max\s+= (?P<n>\d+)", "serve.parallel", 1),
    (r"\bn_ubatch\s+= (?P<n>\d+)", "serve.ubatch", 1),
    (r"cache state: (?P<n>\d+) prompts", "serve.prompt_cache_entries", 0),
)
_SIZES = (
    (r"cache state: \d+ prompts, (?P<n>\d+(?:\.\d+)?) (?P<u>MiB)", "serve.prompt_cache"),
    (r"cache state: .{0,60}\(limits: (?P<n>\d+(?:\.\d+)?) (?P<u>MiB)", "serve.prompt_cache_limit"),
    (r"prompt cache is enabled, size limit: (?P<n>\d+) (?P<u>MiB)", "serve.prompt_cache_limit"),
    (r"to use (?P<n>\d+) (?P<u>MiB) of device memory vs\.", "serve.required"),
    (r"of device memory vs\. (?P<n>\d+) (?P<u>MiB) of free", "serve.available"),
    (r"(?P<n>\d+) (?P<u>M(?:i?B)) VRAM available, loading", "serve.available"),
    (r"VRAM used: (?P<n>\d+(?:\.\d+)?) (?P<u>M(?:i?B))", "serve.weights"),
    (r"[Kk][Vv] self size\s*=\s*(?P<n>\d+(?:\.\d+)?) (?P<u>M(?:i?B))", "serve.kv_cache"),
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def read(document: Document) -> Reading:
    """Return the figures of the last start."""
    found: dict[str, Fact] = {}
    plan = Plan()
    for index in haystack_of(document).telling(ANCHORS):
        line = document.lines[index]
        if len(line.text) > LONGEST:
            continue
        if plan.take(document, line):
            continue
        for fact in _facts_of(document, line):
            found[fact.key] = fact
    for fact in (*plan.buffer_facts(), *plan.spread_facts(), *balance_facts(plan)):
        found[fact.key] = fact
    free, haystack = found.get("oom.free"), haystack_of(document)
    if free is not None and not any(haystack.has(word) for word in _AFTER_WEIGHTS):
        source = "the first buffer on a device holds weights"
        first = derived("serve.failed_buffer", "weights", *free.quotes, source=source)
        found[first.key] = first
    name = _device_name(document)
    return Reading(facts=(*found.values(), *([] if name is None else [name])))


def _device_name(document: Document) -> Fact | None:
    """Return the name of the devices where all are of one name: it tells their memory."""
    told: dict[str, Quote] = {}
    for index in haystack_of(document).telling(("device ",)):
        line = document.lines[index]
        hit = _compiled(_DEVICE).search(line.text) if len(line.text) <= LONGEST else None
        if hit is not None:
            name = next(one for one in hit.groups() if one)
            told.setdefault(name.strip(), document.quote(line, *hit.span()))
    if len(told) != 1:
        return None
    ((name, quote),) = told.items()
    return stated("gpu.name", name, quote)


def _facts_of(document: Document, line: LogLine) -> Iterator[Fact]:
    for pattern, key, least in _COUNTS:
        hit = _compiled(pattern).search(line.text)
        if hit is not None and int(hit["n"]) >= least:
            yield stated(key, int(hit["n"]), document.quote(line, *hit.span()))
    for pattern, key in _SIZES:
        hit = _compiled(pattern).search(line.text)
        if hit is not None:
            size = size_of(hit["n"], unit_bytes(hit["u"]) or 1)
            quote = document.quote(line, *hit.span())
            yield stated(key, size.bytes, quote, slack=size.slack_bytes)
    hit = _compiled(r"\bflash_attn\s+= (?P<on>[01]|enabled|disabled|auto)\b").search(line.text)
    if hit is not None and hit["on"] != "auto":
        quote = document.quote(line, *hit.span())
        yield stated("serve.flash_attention", hit["on"] in ("1", "enabled"), quote)
    hit = _compiled(r"clip_model_loade?r?:|CLIP using \w+ backend").search(line.text)
    if hit is not None:
        yield flag("serve.vision", document.quote(line, *hit.span()))
