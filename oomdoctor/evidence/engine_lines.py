"""Patterns of the memory lines of serving engines, as data: fact key, literal, expression.

`n` is the figure, `m` one that is added to it, `unit` its unit (GiB where the text has none).
"""

from __future__ import annotations

import re
import sys
from functools import cache

from oomdoctor.record import NamedTuple

SIZE = r"(?P<n>-?\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?B)"
NUMBER = r"(?P<n>-?\d+(?:\.\d+)?)"
COUNT = r"(?P<n>\d[\d,]*)"
_FREE = r"Initial free memory -?\d[\d.]*\s*[KMGT]i?B"


class Pattern(NamedTuple):
    """One kind of line: `literal` (lower case) is tested before the expression is compiled.

    `key` is the fact that it states, or the name that an engine's statement goes by.
    """

    key: str
    literal: str
    source: str

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Search a line, or a part of it."""
        return _compiled(self.source).search(text, start, end)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


_GIB = rf"\(GiB\): {NUMBER}"
BYTES = (
    Pattern("gpu.total", "total gpu memory (gib)", rf"Total GPU memory {_GIB}"),
    Pattern("serve.room", "component creation attempt", rf"component creation attempt {_GIB}"),
    Pattern("serve.weights", "model weights take", rf"model weights take {SIZE}"),
    Pattern("serve.weights", "model weights took", rf"Loading model weights took {SIZE}"),
    Pattern("serve.weights", "model loading took", rf"Model loading took {SIZE}"),
    Pattern("serve.weights", "load weight end", rf"Load weight end\..{{0,300}}mem usage={SIZE}"),
    Pattern("serve.non_torch", "non_torch_memory takes", rf"non_torch_memory takes {SIZE}"),
    Pattern("serve.non_torch", "non_torch_memory=", rf"non_torch_memory={SIZE}"),
    Pattern("serve.activation_peak", "activation peak memory takes", rf"memory takes {SIZE}; the"),
    Pattern("serve.kv_cache", "reserved for kv cache is", rf"reserved for KV Cache is {SIZE}"),
    Pattern("serve.kv_cache", "kv_cache_size=", rf"kv_cache_size={SIZE}"),
    Pattern("serve.kv_cache", "available kv cache memory", rf"KV cache memory: {SIZE}"),
    Pattern(
        "serve.kv_cache",
        "larger than the available kv cache memory",
        rf"available KV cache memory \({SIZE}\)",
    ),
    Pattern(
        "serve.kv_cache",
        "kv cache is allocated",
        r"K size: (?P<n>\d+(?:\.\d+)?) GB, V size: (?P<m>\d+(?:\.\d+)?) (?P<unit>GB)",
    ),
    Pattern("serve.kv_needed", "kv cache is needed", rf"\(?{SIZE} KV cache is needed"),
    Pattern(
        "serve.free_before", "initial free memory", rf"Initial free memory {SIZE},? current free"
    ),
    Pattern("serve.free_after", "current free memory", rf"{_FREE},? current free memory {SIZE}"),
    Pattern("serve.graphs", "estimated cuda graph memory", rf"CUDA graph memory: {SIZE}"),
    Pattern("serve.graphs", "graph capturing finished", rf"finished in \d+ secs?, took {SIZE}"),
    Pattern(
        "serve.budget",
        "total_gpu_memory (",
        rf"gpu_memory_utilization \(\d?\.?\d+\)\s*=\s*{SIZE}",
    ),
    Pattern(
        "serve.budget",
        "on startup is less than",
        r"desired GPU memory utilization \(\d?\.?\d+,\s*(?P<n>\d+(?:\.\d+)?)\s*(?P<unit>GiB)\)",
    ),
    Pattern("gpu.total", "total_gpu_memory (", rf"total_gpu_memory \({SIZE}\)"),
    Pattern("gpu.total", "total_gpu_memory=", rf"total_gpu_memory={SIZE}"),
    Pattern("gpu.total", "on startup is less than", rf"\(\d+(?:\.\d+)?/{SIZE}\) on startup"),
    Pattern(
        "gpu.free",
        "on startup is less than",
        r"\((?P<n>\d+(?:\.\d+)?)/\d+(?:\.\d+)?\s*(?P<unit>GiB)\) on startup",
    ),
    Pattern("serve.initial_usage", "initial_memory_usage=", rf"initial_memory_usage={SIZE}"),
    Pattern("gpu.free", "capacity is unbalanced", rf"(?:model_load|per_gpu)_memory={NUMBER}"),
    Pattern("gpu.free", "avail mem=", rf"avail[_ ]mem={SIZE}"),
    Pattern("gpu.free", "in paged kv cache: total", rf"total: \S+ GiB, available: {SIZE}"),
    Pattern("gpu.total", "in paged kv cache: total", rf"kv cache: total: {SIZE}"),
    Pattern("serve.graphs", "capture cuda graph end", rf"mem usage={SIZE}"),
    Pattern("serve.weights", "loaded engine size", rf"Loaded engine size: {SIZE}"),
    Pattern("serve.weights", "sum of model weight size", rf"model weight size \({SIZE}\)"),
    Pattern("serve.kv_cache", "paged kv cache (", rf"Allocated {SIZE} for max tokens"),
    Pattern("serve.compute_buffer", "execution context memory", rf"Allocated {SIZE} for execution"),
    Pattern("serve.sleep_freed", "sleep mode freed", rf"mode freed {SIZE} memory"),
    Pattern("serve.sleep_in_use", "sleep mode freed", rf"memory, {SIZE} memory is still in use"),
)
COUNTS = (
    Pattern("serve.kv_blocks", "gpu blocks", rf"# GPU blocks: {COUNT}"),
    Pattern("serve.kv_blocks", "cuda blocks", rf"# cuda blocks: {COUNT}"),
    Pattern("serve.kv_tokens", "kv cache size:", rf"KV cache size: {COUNT} tokens"),
    Pattern("serve.kv_tokens", "kv cache is allocated", rf"#tokens: {COUNT}"),
    Pattern("serve.max_seqs", "warming up sampler", rf"with {COUNT} dummy requests"),
    Pattern("serve.kv_tokens", "stored in kv cache (", rf"stored in KV cache \({COUNT}\)"),
    Pattern("serve.kv_tokens", "maximum model length is", rf"maximum model length is {COUNT}"),
    Pattern("serve.max_len", "maximum concurrency for", rf"concurrency for {COUNT} tokens"),
    Pattern("serve.max_len", "max seq len (", rf"max seq len \({COUNT}\)"),
    Pattern("serve.kv_tokens", "max_total_num_tokens=", rf"max_total_num_tokens={COUNT}"),
    Pattern("serve.kv_tokens", "paged kv cache (", rf"in paged KV cache \({COUNT}\)"),
    Pattern("serve.max_batched_tokens", "chunked_prefill_size=", rf"prefill_size={COUNT}"),
    Pattern("serve.max_seqs", "mamba cache blocks", rf"max_num_seqs \({COUNT}\) exceeds"),
    Pattern("serve.max_seqs", "max_running_requests=", rf"max_running_requests={COUNT}"),
    Pattern("serve.max_len", "context_len=", rf"\bcontext_len={COUNT}"),
    Pattern("serve.max_len", "max_seq_len=", rf"\bmax_seq_len={COUNT}"),
    Pattern("serve.tensor_parallel", "tensor_parallel_size=", rf"parallel_size={COUNT}"),
    Pattern("serve.prefill_tokens", "prefill tokens", rf"{COUNT} prefill tokens"),
    Pattern("serve.prefill_tokens", "max_prefill_tokens=", rf"max_prefill_tokens={COUNT}"),
    Pattern("serve.pool_asked", "try to allocate", rf"\bTry to allocate {COUNT} tokens"),
    Pattern("serve.pool_free", "able tokens: ", rf"\bAva\w+able tokens: {COUNT}"),
    Pattern("serve.pool_free", "available_size()=", rf"available_size\(\)={COUNT}"),
    Pattern("serve.total_tokens", "total tokens with", rf"handle {COUNT} total tokens"),
    Pattern("serve.total_tokens", "max_total_tokens=", rf"handle `max_total_tokens={COUNT}"),
)
FLAGS = (
    Pattern("serve.eager", "enforce_eager=", r"(?<!['`\"])enforce_eager=(?P<on>True|False)"),
    Pattern("serve.eager", "disable_cuda_graph=", r"disable_cuda_graph=(?P<on>True|False)"),
    Pattern("gen.engine_sleep", "sleep mode freed", r"(?P<on>Sleep mode freed)"),
)
TEXTS = (
    Pattern("serve.kv_type", "kv_cache_dtype=", r"kv_cache_dtype='?(?P<word>(?:fp8|int8|q\d)\w*)"),
    Pattern("serve.kv_type", "store kv cache", r"Using (?P<word>fp8\w*) data type to store kv"),
    Pattern("serve.kv_type", "kv cache dtype", r"KV cache dtype: torch\.(?P<word>\w+)"),
    Pattern("serve.kv_type", "kv self size", r"K \((?P<word>q\d_\d)\)"),
    Pattern("serve.kv_type", "cells,", r"cells, .{0,60}K \((?P<word>q\d_\d)\)"),
)
RATIOS = (
    Pattern("serve.static_fraction", "mem_fraction_static=", rf"fraction_static={NUMBER}(?![\w.])"),
    Pattern(
        "serve.static_fraction",
        "kv cache under --mem-",
        rf"cache under --mem-fraction-static={NUMBER}(?!\w)",
    ),
    Pattern("serve.utilization", "gpu_memory_utilization (", rf"utilization \({NUMBER}\)"),
    Pattern("serve.utilization", "gpu_memory_utilization=", rf"utilization={NUMBER}(?![\w.])"),
    Pattern("serve.utilization", "on startup is less than", rf"GPU memory utilization \({NUMBER},"),
)
