"""Statements of serving engines, recognised however their text was wrapped, each by a short name.

    ValueError: No available memory for the cache blocks. Try increasing ...        no-cache-blocks
    RuntimeError: CUDA out of memory occurred when warming up sampler with 1024     sampler-warmup
    ValueError: Loaded weights leave no GPU memory for the KV cache under ...     raise-static-pool
    RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied ...  cards-unequal
    ValueError: Free memory on device (60.1/79.1 GiB) on startup is less than ...   share-not-free
    Not enough memory to handle 4096 prefill tokens. You need to decrease ...       token-budget
    WARNING: Requested buffer size (4294967296) exceeds device max_buffer_size ...  buffer-limit
    gpu VRAM usage didn't recover within timeout                                    not-recovered
    RuntimeError: Decode out of memory. Try to lower your batch size.                   pool-full

Rules ask for a name, not for a text: `matches(serve.says, 'no-cache-blocks')`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence import wrapped
from oomdoctor.evidence.engine_lines import Pattern
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Fact, Reading

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, Quote

LEAD, TRAIL = 200, 1200

STATEMENTS = (
    Pattern("no-cache-blocks", "cache blocks", r"No available memory for the cache blocks"),
    Pattern("no-cache-blocks", "auto-fit max_model_len", r"Cannot auto-fit max_model_len: not eno"),
    Pattern(
        "request-exceeds-cache",
        "cache blocks",
        r"max_num_seqs \(\d+\) exceeds available Mamba cache blocks",
    ),
    Pattern(
        "request-exceeds-cache",
        "kv cache",
        r"KV cache is needed, which is larger than|tokens that can be stored in KV cache",
    ),
    Pattern("pool-full", "lower your batch", r"(?:Prefill|Decode) out of memory\. Try to lower"),
    Pattern("sampler-warmup", "sampler", r"warming up (?:the )?sampler with \d+ dummy requests"),
    Pattern(
        "share-not-free",
        "on startup is less than",
        r"on startup is less than desired GPU memory utilization",
    ),
    Pattern("profile-disturbed", "memory profiling", r"Error in memory profiling"),
    Pattern("image-profile", "profile run", r"profile run for multi-?modal"),
    Pattern("image-profile", "encoder cache", r"Encoder cache will be initialized"),
    Pattern(
        "raise-static-pool",
        "mem-fraction-static",
        r"Not enough memory.{0,40}try to increase --?mem-fraction-static",
    ),
    Pattern("raise-static-pool", "kv cache", r"weights leave no GPU memory for the KV cache"),
    Pattern("cards-unequal", "capacity is unbalanced", r"Error: The memory capacity is unbalanced"),
    Pattern(
        "lower-static-pool",
        "mem-fraction-static",
        r"try to (?:reduce|decrease|lower) .{0,12}--?mem-fraction-static"
        r"|set --?mem-fraction-static to a (?:smaller|lower)",
    ),
    Pattern(
        "token-budget",
        "not enough memory to handle",
        r"Not enough memory to handle [`\d].{0,60}(?:tokens|max_total_tokens)",
    ),
    Pattern(
        "token-budget",
        "need to decrease",
        r"need to decrease .{0,4}--max-batch-(?:prefill|total)-tokens",
    ),
    Pattern("server-warmup", "warmup", r"Method Warmup encountered an error"),
    Pattern("server-warmup", "warmup", r"Warmup\(Generation\(|\bwarmup\{"),
    Pattern("server-warmup", "warmup model", r"Unable to warm-?up (?:the )?model"),
    Pattern(
        "buffer-limit",
        "requested buffer size",
        r"Requested buffer size (?:\(\d+\) )?exceeds (?:the )?device (?:memory allocation|\w*buffer"
        r"[_ ]size) limit",
    ),
    Pattern(
        "buffer-limit",
        "exceeded max size of memory",
        r"Exceeded max size of memory (?:object )?allocation",
    ),
    Pattern(
        "buffer-limit",
        "maximum allowed buffer size",
        r"(?:larger|greater) than the maximum allowed buffer size",
    ),
    Pattern("not-recovered", "recover within", r"VRAM usage didn.?t recover within timeout"),
    Pattern(
        "weights-exceed-device",
        "sum of model weight size",
        r"less than the sum of model weight size",
    ),
    Pattern(
        "weights-exceed-device",
        "insufficient vram",
        r"Insufficient VRAM (?:in split )?for model(?! and cache)",
    ),
    Pattern(
        "weights-exceed-device",
        "memory to load",
        r"not enough (?:gpu |device |video )?memory to load (?:the )?(?:model|weights)",
    ),
    Pattern(
        "weights-exceed-device",
        "failed to load model",
        r"failed to load model\W{1,4}not enough (?:gpu |device |video )?memory",
    ),
    Pattern(
        "arena-limit",
        "available memory of",
        r"Available memory of \d+ is smaller than requested bytes of \d+",
    ),
)
ANCHORS = (
    "memory utilization",
    "on startup",
    "sampler",
    "gpu_memory_utilization",
    "max_num_seqs",
    "cache blocks",
    "kv cache",
    "memory profiling",
    "mem-fraction-static",
    "max-batch-",
    "warmup",
    "profile run",
    "buffer size",
    "recover within",
    "model weight size",
    "insufficient vram",
    "memory to load",
    "failed to load model",
    "smaller than requested",
    "exceeded max size",
    "auto-fit max_model_len",
    "lower your batch",
    "capacity is unbalanced",
)


def read(document: Document) -> Reading:
    """Return the names of what the engine says, one per line, each with its place."""
    told: dict[str, Quote] = {}
    for one in STATEMENTS:
        if one.key not in told:
            quote = _place(document, one)
            if quote is not None:
                told[one.key] = quote
    if not told:
        return Reading()
    said = Fact(key="serve.says", value="\n".join(told), quotes=tuple(told.values()))
    return Reading(facts=(said,))


def _place(document: Document, one: Pattern) -> Quote | None:
    """Return where a statement stands: on a line, or cut over several."""
    haystack = haystack_of(document)
    for index in haystack.telling((one.literal,)):
        line = document.lines[index]
        at = haystack.lowered(index).find(one.literal)
        found = one.search(line.text, max(0, at - LEAD), at + TRAIL)
        if found is not None:
            return document.quote(line, *found.span())
    cut = wrapped.last(document, one.literal, one.source)
    return None if cut is None else cut.quotes()[0]
