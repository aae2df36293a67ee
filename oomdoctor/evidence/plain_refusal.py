"""Memory that was refused, in words that no other reader knows and that name no device.

    RuntimeError: Could not allocate memory for the array
    duckdb.OutOfMemoryException: Out of Memory Error: could not allocate block of size 256.0 KiB
    faiss: Error: 'p' failed: Memory allocation failed
    LLVM ERROR: out of memory
    lightgbm.basic.LightGBMError: bad allocation
    RuntimeError: mmap error: errno=12

Asked where nothing else failed: an exception that speaks of memory is no other fault. Where an
allocation was refused and the whole text names no device either, it was main memory; bare words
such as `out of memory` leave open which memory it was.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.plain_oom import complains
from oomdoctor.evidence.progress_lines import parse_progress
from oomdoctor.evidence.recovery import unanswered
from oomdoctor.evidence.signs import LEAD, SIZED, TRAIL, Hit, Sign, event_of, gpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.model.core import Document, Failure

LITERALS = (
    "of memory",
    "ofmemory",
    "resourceexhausted",
    "enough memory",
    "insufficient memory",
    "memory exhausted",
    "memory error",
    "memoryerror",
    "allocate",
    "allocation",
    "to alloc",
    "alloc failed",
    "bad_alloc",
    "bad_malloc",
    "errno",
)
MOST_NAMING = 400
"""Lines that are asked whether they name a device."""
MOST_AFTER = 2000
"""Lines behind a refusal that may show that the work went on."""
_REFUSED = (
    r"\b(?:out|run out|ran out|running out) of memory\b"
    r"|(?:OutOfMemory|ResourceExhausted)\w*(?=:|\s*$)"
    r"|\bnot enough memory\b"
    r"|\binsufficient memory\b|\bmemory exhausted\b|\bMemory ?Error\b|\bbad_m?alloc\b"
    r"|\bbad allocation\b|\bmemory allocation (?:of .{1,40} )?(?:failed|failure|error)"
    r"|\balloc(?:ation)? fail(?:ed|ure)?\b|\berrno[ :=]{1,3}12\b"
    r"|(?:fail(?:ed)? to|unable to|could not|cannot|can't) (?:m?alloc|allocate|reserve)\b"
    r"(?=.{0,60}?(?:memory|buffer|array|tensor|block|vector|\bbytes\b|\d ?[KMG]i?B\b))"
    r"(?!.{0,20} (?:\d+ )?(?:port|address|gpus?|resources?|nodes?|tty|instances?)\b)"
)
_NOT_MEMORY = (
    r"\bpinned\b|fall(?:s|ing)? ?back|static TLS block|shared memory|\bdisk\b|\bquota\b"
    r"|\bKV cache\b|\bibv_|memlock"
)
_TESTED = r"\b(?-i:PASSED|SKIPPED|XFAIL|FAILED)\b|::test_|^\s*(?:from|import|def|class) "
_SIZE = (
    r"(?:alloc\w*|size|memory)(?:[ :=(]|of|with|byte|size|memory|block|array){1,24}"
    rf"(?P<host>{SIZED})"
)
_DEVICES = (
    *("cuda", "gpu", "nvidia", "vram", "rocm"),
    *("hpu", "gaudi", "neuroncore", "devmem", "dev_mem", "directml", "dmlexec", "opencl", "vulkan"),
    *("device memory", "devicememory", "npu", "ascend", "aclrt", "aclnn", "hccl", "dml "),
    *("mlu", "gcu", "tpu", "xpu", "sycl", "level_zero", "level-zero", "metal"),
)
_DEVICE = (
    r"cuda|\bgpus?\b(?!-)|nvidia|\bvram\b|\brocm\b|\bhpu\b|\bgaudi|neuroncore|dev_?mem\b"
    r"|directml|\bdmlexec|\bopencl\b|\bvulkan|\bdevice ?memory\b|\bascend|\bacl(?:rt|nn)|\bhccl"
    r"|\b(?:torch_)?(?:npu|mlu|gcu|tpu|xpu|dml)s?\b|\bsycl\b|\blevel.zero\b|\bmetal(?:error)?\b"
)
_NOT_USED = (
    r"CUDA_VISIBLE_DEVICES=(?:\s|''|\"\"|-1)|(?:no|without|not|cpu.only).{0,30}(?:cuda|gpu)"
    r"|(?:cuda|gpu)[ :=]+(?:False|0\b|not)"
)
_OF_HOST = (
    r"alloc|\bMemory ?Error|OutOfMemory\w|memory exhausted|errno|LLVM ERROR|runtime: out of memory"
    r"|compil|linker|heap"
)
_HOST = Sign((), "", "host-oom", (("host.allocation_failed", True),), "cpu-allocator")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def refusals(document: Document) -> Iterator[Failure]:
    """Yield the first line that says memory was refused, of the host or of a device."""
    haystack = haystack_of(document)
    for index in haystack.telling(LITERALS):
        text = document.lines[index].text
        lowered = haystack.lowered(index)
        at = min(lowered.find(one) for one in LITERALS if one in lowered)
        near = text[max(0, at - LEAD) : at + TRAIL]
        found = _compiled(_REFUSED).search(near)
        if found is None or _compiled(_NOT_MEMORY).search(near) or not complains(near, found):
            continue
        if _compiled(_TESTED).search(text[:TRAIL]) or _goes_on(document, index):
            continue
        host = _compiled(_OF_HOST).search(near) and not _on_device(haystack)
        sign = _HOST if host else gpu((), "", "other", "runtime", family="plain")
        match = (_compiled(_SIZE).search(near) if host else None) or found
        event = event_of(document, Hit(index, sign, _in_line(text, match)))
        if unanswered(haystack, [event]):
            yield event.failure
            return


def _goes_on(document: Document, index: int) -> bool:
    """Say whether steps follow, so that the program got over it."""
    later = document.lines[index + 1 : index + 1 + MOST_AFTER]
    steps = (parse_progress(line) for line in later)
    return any(found is not None and (found.step or 0) > 0 for found in steps)


def _on_device(haystack: Haystack) -> bool:
    """Say whether the text speaks of a device anywhere, other than that it has none."""
    for index in haystack.telling(_DEVICES)[:MOST_NAMING]:
        text = haystack.document.lines[index].text[:TRAIL]
        if _compiled(_DEVICE).search(text) and not _compiled(_NOT_USED).search(text):
            return True
    return False


def _in_line(text: str, match: re.Match[str]) -> re.Match[str]:
    """Return the match at its place in the whole line."""
    whole = match.re.search(text, max(0, text.find(match.group(0))))
    return whole or match
