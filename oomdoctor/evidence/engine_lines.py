"""Patterns of the memory lines of serving engines, as data: fact key, literal, expression.

`n` is the figure, `m` one that is added to it, `unit` its unit (GiB where the text has none).
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.record import NamedTuple

SIZE = r"(?P<n>-?\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?B)"
NUMBER = r"(?P<n>-?\d+(?:\.\d+)?)"
COUNT = r"(?P<n>\d[\d,]*)"


class Pattern(NamedTuple):
    """One kind of line: `literal` (lower case) is tested before the expression is compiled."""

    key: str
    literal: str
    source: str

    def search(self, text: str) -> re.Match[str] | None:
        """Search a line."""
        return _compiled(self.source).search(text)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


BYTES = (
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
)
COUNTS = (
    Pattern("serve.kv_blocks", "gpu blocks", rf"# GPU blocks: {COUNT}"),
    Pattern("serve.kv_blocks", "cuda blocks", rf"# cuda blocks: {COUNT}"),
    Pattern("serve.kv_tokens", "kv cache size:", rf"KV cache size: {COUNT} tokens"),
    Pattern("serve.kv_tokens", "kv cache is allocated", rf"#tokens: {COUNT}"),
    Pattern("serve.max_seqs", "warming up sampler", rf"with {COUNT} dummy requests"),
    Pattern("serve.max_len", "maximum concurrency for", rf"concurrency for {COUNT} tokens"),
    Pattern("serve.max_len", "max seq len (", rf"max seq len \({COUNT}\)"),
)
RATIOS = (
    Pattern("serve.utilization", "gpu_memory_utilization (", rf"utilization \({NUMBER}\)"),
    Pattern("serve.utilization", "gpu_memory_utilization=", rf"utilization={NUMBER}(?![\w.])"),
    Pattern("serve.utilization", "on startup is less than", rf"GPU memory utilization \({NUMBER},"),
)
