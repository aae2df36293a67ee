"""Device memory running out in the words of libraries that no other reader knows.

    RuntimeError: after cudaLaunch in triple_chevron_launcher::launch(): out of memory
    RuntimeError: [enforce fail at context_gpu.cu:415] error == cudaSuccess. 2 vs 0. Error at:
        /src/caffe2/core/context_gpu.cu:415: out of memory
    terminate called after throwing an instance of 'thrust::system::detail::bad_alloc'
    MemoryError: std::bad_alloc: out_of_memory: RMM failure at: Maximum pool size exceeded
    pyopencl._cl.MemoryError: clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE
    [E] failed to allocate CUDA memory with byte size 67108864 on GPU 0: out of memory
    CUDA: Out of memory
    [torch_memory_saver.cpp] CUresult error  result=2 file=csrc/core.cpp func=cu_mem_create

The line must complain (an exception, `failed`, `ERROR`), say that memory ran out, and name a device
or its runtime. Advice, warnings and the host's memory do not count. `torch_oom` asks here last.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.signs import LEAD, SIZED, TRAIL, Hit, event_of, gpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack

HEAD = 200
"""How much of a line tells its level."""

LITERALS = (
    "of memory",
    "out_of_memory",
    "of gpu memory",
    "of device memory",
    "of video memory",
    "of cuda memory",
    "of vram",
    "not enough",
    "to allocate",
    "not allocate",
    "not malloc",
    "allocation failed",
    "allocation failure",
    "allocation_failure",
    "allocation error",
    "alloc failed",
    "malloc failed",
    "bad_alloc",
    "out_of_resources",
    "cudaerror",
    "cuda error",
    "curesult",
    "hiperror",
    "hip error",
)

_CODE_2 = (
    r"\b(?:(?:cuda|hip)Error(?:_t)?|CUresult|(?:CUDA|HIP) (?:runtime |driver |API )?error)\b"
    r"(?:[ :=(#]|\berror\b|\bcode\b|\bresult=|\bstatus\b){1,8}2\b"
    r"(?!\.\d|,\d|[ -]?(?:[KMGT]i?B|of|/|times|errors|tests)\b)"
)
"""The runtime's number for memory that ran out, where its name is not printed."""

_BARE = (
    r"\s*(?:\[[^\]]{1,40}\]\s*)?(?:error\W{1,3})?(?:CUDA|HIP|ROCm|GPU)(?: error)?\W{1,3}"
    r"out of memory[.!]{0,3}\s*$"
)
"""A line that says nothing else, in whatever spelling; headings, lists and tables are prose."""

_WHICH = r"(?:(?:free|available|GPU|device|video|graphics|CUDA|HIP) ){0,2}"
_RAN_OUT = (
    rf"(?:\b(?:out|run out|ran out|running out) of {_WHICH}(?:memory|V?RAM\b)"
    r"(?! (?:errors|events|issues)))"
    rf"|OUT_OF_MEMORY|\bnot enough {_WHICH}(?:memory|VRAM\b)"
    r"|thrust::system::detail::bad_alloc|bad_alloc: \w*out.of.memory"
    r"|\bCL_OUT_OF_RESOURCES|: OUT_OF_RESOURCES|MEM_OBJECT_ALLOCATION_FAILURE"
    r"|Memory Object Allocation Failure"
    r"|(?:(?:failed|unable) to|could not|cannot|can't) (?:m?alloc(?:ate)?\b|(?:cuda|hip)malloc)"
    r"(?=.{0,60}?(?:memory|buffer|tensor|\bbytes\b|\d ?[KMG]i?B\b))"
    r"|(?:cuda|hip)Malloc\w*(?:\(.{0,80}?\))? (?:retry )?failed"
    rf"|\balloc(?:ation)? fail(?:ed|ure)?|\bmemory allocation error|{_CODE_2}"
)
_DEVICE = (
    r"cuda|CUresult|\bgpus?\b(?!-)|(?-i:GPU)|[_.]cuh?\b|\bHIP\b|(?-i:\bhip[A-Z])|rocm|\bdevices?\b|\bcuMem|\bthrust::|\bNCCL"
    r"|TensorRT|\[TRT\]|triple_chevron|\b(?:parallel_for|for_each|transform|reduce|sort\w*)"
    r" failed|failed to synchronize|\bVRAM\b|video memory|\bRMM|OpenCL|\bCL_|(?-i:\bcl[A-Z])"
    r"|boost::compute|create stream|PhysX|OptiX|nvcuvid|cudnn|cublas|DeviceMemory"
    r"|\b(?:NPU|XPU|HPU|MLU|GCU|TPU|IPU|DML)s?\b|\bAscend|\bacl(?:rt|nn)|\bHCCL|\bMetal(?:Error)?\b"
)
_RAISES = (
    r"(?-i:(?:Error|Exception|Failure|BadAlloc|OutOfMemory|ResourceExhausted)\w*\b\W)|(?-i:[a-z]_(?:error|exception)\b)|\bERROR\b|(?-i:\bERR\b)|\bFATAL\b|\[E\]"
    r"|^\W*[EF]\d{4} |what\(\):|terminate called|\b(?:check|assert\w*|enforce) (?:.{0,40} )?fail"
)
_COMPLAINS = r"\berror\b|\bfail(?:ed|s|ure)?\b|\bstatus\b"
_HOST = (
    r"\b(?:on|of) (?:the )?host\b|host memory|host (?:m?alloc|buffer)|Host(?:Alloc|Register)|pinned"
    r"|Cannot allocate memory|\bkill|cgroup|\b(?:Java|JavaScript) heap|heap space|cc1plus|\bnvcc"
    r"|ptxas|\bcicc\b|\bsrun\b|slurm|virtual memory|\bCPU\b|CPUAllocator|alloc_cpu"
    r"|(?:system|main|shared) memory|/dev/shm|(?<!V)\bRAM\b|\bdisk\b"
)
_ADVISES = r"\b(?:if you|avoid\w*|prevent\w*|may|might|to reduce|in case|hint|tip)\b"
_SPOKEN = (
    rf"{_ADVISES}|\b(?:if|when|whenever|can|could(?! not)|would|should|try|without|never|lower"
    r"|consider|help\w*|because of|due to|how to|instead|caught)\b|\b(?:no|0)\s*(?:\w+\s*)?$"
)
_SPOKEN_AFTER = r".{0,40}?\b(?:can be|may be|could be|is avoided|happens|occurs when)\b"
_QUIET = (
    r"\W*(?:\S+ ){0,4}?\W*(?:WARN(?:ING)?|INFO|DEBUG|NOTE|TIP)\b|[WID]\d{4} "
    r"|\s*(?:#|//|raise\b|except\b|if\b|print|(?-i:assert\b)|import\b|from\b|- |\w+ = )"
    r"|.{0,80}\bWarning: |(?:\S+ ){0,2}[WI] \S+\.cc:\d+\]"
)
_ALONE = r"(?:\W|\b(?:error|system|the|gpu|device|is|ran|LoadError)\b)*$"
_SIZE = (
    r"(?:alloc\w*|\wmalloc|size|memory)(?:[ :=(]|of|with|byte|size|memory|CUDA|GPU|tensor){1,24}"
    rf"(?P<requested>{SIZED}|\d{{5,}})"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def events_in(haystack: Haystack, taken: frozenset[int]) -> Iterator[Event]:
    """Yield an event for each line that tells of it; lines in `taken` are spoken for."""
    for index in haystack.lines_with(LITERALS):
        if index in taken:
            continue
        lowered = haystack.lowered(index)
        at = min(lowered.find(one) for one in LITERALS if one in lowered)
        text = haystack.document.lines[index].text[max(0, at - LEAD) : at + TRAIL]
        if _tells(text):
            backend = _backend(text)
            form = "engine" if backend == "other" else "runtime"
            sign = gpu((), "", backend, form, family="plain")
            found = _shown(haystack.document.lines[index].text)
            if found is not None:
                yield event_of(haystack.document, Hit(index, sign, found))


def _tells(text: str) -> bool:
    """Say whether a line complains that a device's memory ran out."""
    if _compiled(_BARE).match(text):
        return True
    found = _compiled(_RAN_OUT).search(text)
    if found is None or not names_device(text) or _compiled(_HOST).search(text):
        return False
    return complains(text, found)


def names_device(text: str) -> bool:
    """Say whether a text names a device or its runtime."""
    return _compiled(_DEVICE).search(text) is not None


def complains(text: str, found: re.Match[str]) -> bool:
    """Say whether a line that holds `found` reports a failure; advice and warnings do not."""
    before, after = text[: found.start()], text[found.end() :]
    if _compiled(_QUIET).match(text[:HEAD]) or _compiled(_ADVISES).search(before):
        return False
    if "not a failure" in after:
        return False
    if _compiled(_SPOKEN_AFTER).match(after):
        return False
    if _compiled(_RAISES).search(text) or _compiled(_ALONE).match(before):
        return True
    return bool(_compiled(_COMPLAINS).search(text)) and not _compiled(_SPOKEN).search(before)


def _backend(text: str) -> str:
    lowered = text.lower()
    if "rocm" in lowered or re.search(r"\bhip[A-Z_ ]|\bHIP\b", text):
        return "hip"
    plain = (
        "cuda",
        "curesult",
        ".cu:",
        "thrust",
        "rmm",
        "cumem",
        "chevron",
        "synchronize",
        "parallel_for",
    )
    return "cuda" if any(word in lowered for word in plain) else "other"


def _shown(text: str) -> re.Match[str] | None:
    """Return the match to quote: the size asked for, where the line states it."""
    return _compiled(_SIZE).search(text[:4000]) or _compiled(_RAN_OUT).search(text)
