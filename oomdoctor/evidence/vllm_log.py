"""What serving engines print about their memory: vLLM of all generations, SGLang, TGI.

    Loading model weights took 14.9 GB                                            (V0)
    Model loading took 14.9889 GiB and 3.2 seconds                                (V1)
    the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization (0.90)
      = 71.19GiB
    model weights take 14.99GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory
      takes 1.40GiB; the rest of the memory reserved for KV Cache is 54.70GiB.
    Memory profiling results: total_gpu_memory=79.10GiB ... non_torch_memory=0.10GiB ...
      kv_cache_size=54.70GiB gpu_memory_utilization=0.90                          (0.6.4)
    # GPU blocks: 27000, # CPU blocks: 2048
    Available KV cache memory: -1.05 GiB
    GPU KV cache size: 448,000 tokens
    Free memory on device (60.1/79.1 GiB) on startup is less than desired GPU memory utilization
      (0.9, 71.19 GiB).
    Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.1 GB, mem usage=14.98
      GB.                                                                         (SGLang)
    KV Cache is allocated. #tokens: 400000, K size: 24.4 GB, V size: 24.4 GB
    max_total_num_tokens=91000, chunked_prefill_size=8192, ..., context_len=32768
    Try to allocate 96 tokens.  Available tokens: 1024  ... available_size()=1024
    Not enough memory to handle 16000 total tokens with 4096 prefill tokens.      (TGI)
    [MemUsageChange] Allocated 4.53 GiB for max tokens in paged KV cache (39576). (TensorRT-LLM)

Workers and restarts repeat these lines: the last one before the failure counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence import wrapped
from oomdoctor.evidence.amounts import flag, stated
from oomdoctor.evidence.engine_lines import BYTES, COUNTS, FLAGS, RATIOS, TEXTS, Pattern
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.moment import at_failure, failure_index
from oomdoctor.model.core import Reading
from oomdoctor.units import size_of, unit_bytes

if TYPE_CHECKING:
    import re
    from collections.abc import Container, Iterator, Sequence

    from oomdoctor.model.core import Document, Fact, Quote

ANCHORS = (
    "model weights take",
    "model loading took",
    "kv cache",
    "total_gpu_memory",
    "gpu blocks",
    "cuda blocks",
    "cuda graph",
    "graph capturing finished",
    "warming up sampler",
    "on startup is less than",
    "current free memory",
    "component creation attempt",
    "load weight end",
    "maximum concurrency for",
    "try to allocate",
    "avail mem=",
    "avail_mem=",
    "mem_fraction_static=",
    "max_total_num_tokens=",
    "max_seq_len=",
    "tensor_parallel_size=",
    "enforce_eager=",
    "kv_cache_dtype=",
    "kv self size",
    "cells,",
    "prefill tokens",
    "max_prefill_tokens=",
    "max_total_tokens=",
    "sleep mode freed",
    "loaded engine size",
    "execution context memory",
    "sum of model weight size",
    "gpu_memory_utilization",
    "max_num_seqs",
    "max-batch-",
    "mem-fraction-static",
)
LONGEST = 4000
TABLES = (("bytes", BYTES), ("count", COUNTS), ("ratio", RATIOS), ("flag", FLAGS), ("text", TEXTS))
LITERALS = frozenset(one.literal for _, table in TABLES for one in table)


def read(document: Document) -> Reading:
    """Return the figures of the last start before the failure, one per fact."""
    seen: dict[str, list[tuple[int, Fact]]] = {}
    for index in haystack_of(document).lines_with(LITERALS):
        if len(document.lines[index].text) > LONGEST:
            continue
        for fact in _facts_of(document, index):
            seen.setdefault(fact.key, []).append((index, fact))
    failure = failure_index(document)
    chosen = [
        at_failure(several, order=lambda pair: pair[0], failure=failure)
        for several in seen.values()
    ]
    told = [pair[1] for pair in chosen if pair is not None]
    return Reading(facts=(*told, *_wrapped_facts(document, seen)))


def _facts_of(document: Document, index: int) -> Iterator[Fact]:
    line = document.lines[index]
    lower = haystack_of(document).lowered(index)
    for kind, table in TABLES:
        for one in table:
            found = one.search(line.text) if one.literal in lower else None
            if found is None or wrapped.cut_number(document, index, found.end()):
                continue
            span = found.span("word") if kind == "text" else found.span()
            yield _fact(kind, one, found, (document.quote(line, *span),))


def _wrapped_facts(document: Document, told: Container[str]) -> Iterator[Fact]:
    """Yield what messages say that were cut into several lines, where no line said it."""
    facts: dict[str, Fact] = {}
    for kind, table in TABLES:
        for one in table:
            if one.key in told or one.key in facts:
                continue
            found = wrapped.last(document, one.literal, one.source)
            if found is not None:
                facts[one.key] = _fact(kind, one, found.match, found.quotes())
    yield from facts.values()


def _fact(kind: str, one: Pattern, found: re.Match[str], quotes: Sequence[Quote]) -> Fact:
    if kind == "bytes":
        return _size_fact(one, found, quotes)
    if kind == "count":
        return stated(one.key, int(found["n"].replace(",", "")), *quotes)
    if kind == "ratio":
        return stated(one.key, float(found["n"]), *quotes)
    if kind == "flag":
        return flag(one.key, *quotes, value=found["on"] != "False")
    return stated(one.key, found["word"], *quotes)


def _size_fact(one: Pattern, found: re.Match[str], quotes: Sequence[Quote]) -> Fact:
    groups = found.groupdict()
    scale = unit_bytes(groups.get("unit") or "GiB") or 1
    sizes = [size_of(groups[name], scale) for name in ("n", "m") if groups.get(name)]
    total = sum(size.bytes for size in sizes)
    return stated(one.key, total, *quotes, slack=sum(size.slack_bytes for size in sizes))
