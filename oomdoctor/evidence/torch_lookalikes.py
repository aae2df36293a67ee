"""Failures that look like exhausted GPU memory, or stand beside it, and are something else.

Thousands of assertion lines are one event, and so are the time-outs of one rank. The advice "to
enable device-side assertions" under every CUDA error is no assertion.

    ../aten/src/ATen/native/cuda/Indexing.cu:662: indexSelectLargeIndex: block: [6,0,0], thread:
        [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
    RuntimeError: CUDA error: device-side assert triggered
    RuntimeError: CUDA error: an illegal memory access was encountered
    [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST,
        Timeout(ms)=1800000) ran for 1800000 milliseconds before timing out.
    RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable
    triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 663808, Hardware
        limit: 101376.
    RuntimeError: received 0 items of ancdata
    RuntimeError: unable to open shared memory object </torch_31_36_10> in read-write mode: No such
        file or directory (2)
    Error operation not supported at line 380 in file /src/csrc/pythonInterface.c
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence import device_signs, lookalike_signs
from oomdoctor.evidence.events import fact, merged, part_quote
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.recovery import unanswered
from oomdoctor.evidence.signs import Hit, Sign, event_of, hits
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.model.core import Document, Fact

_FAR = 1_000_000_000
_INDEX = (
    r"(?i)(?:src|dst)?index|\bidx|index out of bounds|n_classes|num_classes|\btarget\b|label"
    r"|vocab|\bcur_target|sel(?:ect)?dimsize"
)
_MEMORY_LINES = (
    "out of memory",
    "outofmemoryerror",
    "tried to allocate",
    "cublas_status_alloc_failed",
    "cublas_status_not_initialized",
    "cublas runtime error",
    "cudnn_status_",
)

SIGNS: tuple[Sign, ...] = (
    Sign(
        ("assertion `",),
        r"(?:\.cuh?|\.hip|kernel\w*|thread: \[|ScatterGather|Loss)\S*.*Assertion `.*failed",
        "assert",
        (("assert.device_side", True),),
        "assert",
        _FAR,
    ),
    Sign(
        ("device-side assert triggered", "device assertion failed", "hiperrorassert"),
        r"(?i)device-side assert triggered|\bdevice assertion failed|hipErrorAssert",
        "assert",
        (("assert.device_side", True),),
        "assert",
        _FAR,
    ),
    Sign(
        ("illegal memory access", "cuda_error_illegal_address", "cudaerrorillegaladdress"),
        r"an illegal memory access was encountered"
        r"|CUDA_ERROR_ILLEGAL_ADDRESS|cudaErrorIllegalAddress",
        "illegal-access",
        (("fault.illegal_access", True),),
        "illegal",
        _FAR,
    ),
    Sign(
        ("memory access fault by gpu",),
        r"Memory access fault by GPU node",
        "illegal-access",
        (("fault.illegal_access", True),),
        "illegal",
        _FAR,
    ),
    Sign(
        ("collective operation timeout", "collective operation timed out"),
        r"(?i)collective operation (?:timeout|timed out)",
        "collective",
        (("collective.timeout", True),),
        "collective",
        _FAR,
    ),
    Sign(
        ("milliseconds before timing out", "timed out waiting"),
        r"ran for \d+ milliseconds before timing out|Timed out waiting \d+ms for (?:recv|send)",
        "collective",
        (("collective.timeout", True),),
        "collective",
        _FAR,
    ),
    Sign(
        ("busy or unavailable", "cudaerrordevicesunavailable"),
        r"(?i)CUDA-capable devices?(?:\(s\))? (?:is/)?are busy or unavailable"
        r"|cudaErrorDevicesUnavailable",
        "other",
        (("fault.device_busy", True),),
        "busy",
        _FAR,
    ),
    Sign(
        ("out of resource: shared memory",),
        r"out of resource: shared memory,? ?(?:Required: ?(?P<wanted>\d+))?"
        r"(?:[, ]*Hardware limit: ?(?P<limit>\d+))?",
        "other",
        (("fault.kernel_shared_memory", True),),
        "kernel",
        _FAR,
    ),
    Sign(
        ("items of ancdata", "too many open files"),
        r"received \d+ items of ancdata|Too many open files",
        "other",
        (("host.fd_limit", True),),
        "fd",
        _FAR,
    ),
    Sign(
        ("unable to open shared memory object",),
        r"unable to open shared memory object <[^>]*> in \S+ mode.*(?:No such file|\(2\))",
        "other",
        (("host.shm_race", True),),
        "race",
        _FAR,
    ),
    Sign(
        (
            "not supported at line",
            "invalid device ordinal at line",
            "cudaerrornotsupported",
            "operation not supported",
        ),
        r"(?:^|: )Error (?:operation not supported|invalid device ordinal) at line \d+"
        r"|CUDA error: operation not supported|cudaErrorNotSupported",
        "other",
        (("fault.not_supported", True),),
        "support",
        _FAR,
    ),
    *device_signs.SIGNS,
    *lookalike_signs.SIGNS,
)

_CALL_LINES = 4
_RESERVES = (
    r"(?i)\b(?:occupy|reserve|hold|fill|block|free|left|remain\w*)_?mem\w*|\bpre_?alloc\w*"
    r"|\bmem\w*_(?:left|free|remain\w*)"
)

ANCHORS = tuple(dict.fromkeys(one for sign in SIGNS for one in sign.literals))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def read(document: Document) -> Reading:
    """Return a failure for each kind of fault and writer, and the facts for the whole input."""
    haystack = haystack_of(document)
    found = [_as_reserve(document, hit) for hit in hits(haystack, SIGNS)]
    told = merged(event_of(document, hit, extra=tuple(_index_fact(document, hit))) for hit in found)
    events = unanswered(haystack, told)
    failures = tuple(event.failure for event in events)
    whole = {one.key: one for failure in failures for one in reversed(failure.facts)}
    return Reading(facts=(*whole.values(), *_orders(haystack, events)), failures=failures)


def _as_reserve(document: Document, hit: Hit) -> Hit:
    """Take a negative size for a full card where the call fills what is free in advance."""
    if hit.sign.family != lookalike_signs.NEGATIVE.family:
        return hit
    above = document.lines[max(0, hit.at - _CALL_LINES) : hit.at]
    if any(_compiled(_RESERVES).search(line.text) for line in above):
        return hit._replace(sign=lookalike_signs.NEGATIVE_RESERVE)
    return hit


def _index_fact(document: Document, hit: Hit) -> Iterator[Fact]:
    """Yield assert.index where the assertion's own text names an index, label or class."""
    text = document.lines[hit.at].text
    at = text.find("Assertion `")
    if hit.sign.family != "assert" or at < 0:
        return
    named = bool(_compiled(_INDEX).search(text))
    quote = part_quote(document, document.lines[hit.at], at, at + 200)
    yield fact("assert.index", named, [quote])


def _orders(haystack: Haystack, events: list[Event]) -> Iterator[Fact]:
    """Yield whether an assertion or a time-out stands before the first text about memory."""
    memory = haystack.lines_with(_MEMORY_LINES)
    if not memory:
        return
    for family, key in (("assert", "assert.before_oom"), ("collective", "collective.before_oom")):
        first = next((event for event in events if event.family == family), None)
        if first is not None:
            before = first.first < memory[0]
            if family == "collective" and _of_another_rank(haystack, first, memory[0]):
                before = False
            yield fact(key, before, [first.failure.line_quote])


def _of_another_rank(haystack: Haystack, event: Event, index: int) -> bool:
    """Say whether a plausible text about memory comes from a rank that others waited for."""
    rank = haystack.document.lines[index].rank
    told = {rank, event.failure.rank}
    return None not in told and len(told) > 1 and "more than 1eb" not in haystack.lowered(index)
