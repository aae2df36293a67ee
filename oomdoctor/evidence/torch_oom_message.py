"""One allocator message to one failure: figures with their quotes, generation, caught or raised.

    [rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has ...
    OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; ...')
    UserWarning: Failed to clone() tensor with name lm_head.weight. ... Error: CUDA out of memory.
    RuntimeError: CUDA out of memory.
    torch.OutOfMemoryError: Tried to allocate 4.00 GiB.           <- somebody left the words out

In messages before 1.4 "cached" leaves out what is allocated; "reserved in total" includes it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.crowded_ranks import listed_siblings
from oomdoctor.evidence.events import Event, absurd_fact, fact, line_quote
from oomdoctor.evidence.small_twins import NOT_COUNTED_BYTES, small_twins
from oomdoctor.evidence.torch_oom_text import Clause, bare_backend, clauses, head_pattern
from oomdoctor.model.core import Failure
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from oomdoctor.evidence.squeeze import Run
    from oomdoctor.model.core import Fact, LogLine

_KEYS = {
    "requested": "oom.requested",
    "asked": "oom.requested",
    "pool_requested": "oom.requested",
    "capacity": "oom.capacity",
    "typo": "oom.capacity",
    "old_capacity": "oom.capacity",
    "pool_capacity": "oom.capacity",
    "free": "oom.free",
    "old_free": "oom.free",
    "pool_free": "oom.free",
    "this_process": "oom.this_process",
    "allowed": "oom.allowed",
    "mps_allowed": "oom.allowed",
    "pool_allowed": "oom.allowed",
    "allocated": "torch.allocated",
    "old_allocated": "torch.allocated",
    "mps_allocated": "torch.allocated",
    "pool_allocated": "torch.allocated",
    "active": "torch.active",
    "cached": "torch.reserved_unallocated",
    "unallocated": "torch.reserved_unallocated",
    "reserved": "torch.reserved",
    "private": "torch.private_pools",
    "other": "oom.other_allocations",
}
_NAMED = ("CUDA", "HIP", "XPU", "NPU", "MUSA")
"""Devices that have a back end of their own; others copy the text of the allocator."""
_NO_CAP_BYTES = 2**60
"""cudaMallocAsync prints 2^64 - 1 bytes as the limit where none is set."""

_LOOK_BACK = 400
_PRINTED_LINES = 12
_OPENING, _CLOSING = ("(", "[", "{", ","), (")", "]", "}")
_AROUND = 300
_PLAIN_END = r"[.!]?(?:['\")\]]*\s*$|\s+[^a-z])"
_PLAIN_START = r"(?:^|(?:Error|Exception|error|exception)\(?['\"]?\s*:?\s*['\"]?|[\]:|>-]\s*)$"
_PROSE = (
    r"\b(?:raise|except|if|elif|assert|avoid|prevent|when|see|seeing|hit|get|getting|causes?)\b"
)
_CAUGHT_BEFORE = (
    *("failedtoclone()tensor", "entrycouldpointtoinvalidmemoryregions"),
    *("ranoutofmemorywithexception", "caughtoom"),
)
_CAUGHT_AFTER = (
    "ranoutofmemory,retrying",
    "ranoutofmemory,skipping",
    "retryingbatch",
    "skippingbatch",
    "skippingthisbatch",
    "attemptingtorecoverfromoom",
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def messages_in(run: Run) -> Iterator[Event]:
    """Yield an event for each message that begins in `run`."""
    heads = [found for found in head_pattern().finditer(run.text) if _announces(run, found)]
    starts = [head.start() for head in heads if head.lastgroup != "bare"]
    spoken = 0
    for head in heads:
        if head.lastgroup == "bare" and head.start() < spoken:
            continue
        following = bisect_right(starts, head.start())
        limit = starts[following] if following < len(starts) else len(run.text)
        found = [
            one
            for one in clauses(run, head.end(), limit)
            if not run.cuts_number(one.start, one.end)
        ]
        if found or head.lastgroup != "bare":
            spoken = max((one.stop for one in found), default=head.end())
            yield _event(run, head, found)


def _announces(run: Run, head: re.Match[str]) -> bool:
    """Say whether the words report an event, and are not advice, source code or prose."""
    rest = run.text[head.end() : head.end() + 40]
    if head.lastgroup in ("pool", "limit4g", "bare") or _compiled(
        r"\.?(?:Triedtoallocate(?:\d|morethan1EB)|Allocationwaspre|\(MPSallocated)"
    ).match(rest):
        return True
    line = run.line_at(head.start())
    column = run.column_at(head.start())
    before = line.text[max(0, column - _AROUND) : column]
    last = run.line_at(head.end() - 1)
    column = run.column_at(head.end() - 1) + 1
    after = last.text[column : column + _AROUND]
    if "Error" not in before and _compiled(_PROSE).search(before.lower()):
        return False
    if re.match(r"\s*(?:raise|except|if|elif|assert|return|#)\b", before):
        return False
    start = _compiled(_PLAIN_START).search(before)
    return bool(start and _compiled(_PLAIN_END).match(after))


def _event(run: Run, head: re.Match[str], found: list[Clause]) -> Event:
    at = head.start()
    end = max((one.stop for one in found), default=head.end())
    line = run.line_at(at)
    quote = line_quote(run.document, line, column=run.column_at(at))
    facts = (
        fact("oom.seen", value=True, quotes=[quote]),
        *_identity(run, head, found, end),
        *_figures(run, found),
        *_processes(run, found),
        *listed_siblings(run, found),
        *small_twins(run, found),
        *_caught(run, at, end),
    )
    failure = Failure(
        kind="gpu-oom",
        order=line.number,
        line_quote=quote,
        facts=(*facts, *_absurd(run, found, facts)),
        rank=_rank(run.document.lines, run.index_at(at)),
        stamp=line.stamp,
    )
    return Event(failure=failure, first=run.index_at(at), last=run.index_at(max(at, end - 1)))


def _rank(lines: Sequence[LogLine], index: int) -> int | None:
    """Return the rank of a line; a module that was printed over several lines hides it.

    [RANK 6] [E] Error with args ('down_proj', Linear(
      (lora): LoraLayer()
    )): CUDA out of memory. ...
    """
    line = lines[index]
    if line.rank is not None or not line.text.startswith(_CLOSING):
        return line.rank
    for above in reversed(lines[max(0, index - _PRINTED_LINES) : index]):
        if above.rank is not None:
            return above.rank if above.text.rstrip().endswith(_OPENING) else None
        if not above.text.startswith((" ", "\t", *_CLOSING)):
            return None
    return None


def _identity(run: Run, head: re.Match[str], found: list[Clause], end: int) -> Iterator[Fact]:
    """Yield back end, form, generation, and whether figures and the fixed hint are there."""
    names = {one.name: one for one in found}
    bare = head.lastgroup == "bare"
    quotes = run.quotes(head.start(), found[0].stop if bare else head.end())
    backend = bare_backend(run.text[head.start() : end]) if bare else _backend(head)
    yield fact("oom.backend", backend, quotes)
    yield fact("oom.form", _form(head, names), quotes)
    generation = _generation(backend, names, run.text[end : end + 260])
    if head.lastgroup == "pool":
        generation = "cuda-async"
        yield fact("alloc.backend", "cudaMallocAsync", quotes)
    if generation:
        yield fact("oom.generation", generation, quotes)
    given = any(_KEYS.get(name) == "oom.requested" for name in names)
    yield fact("oom.figures_given", given, quotes)
    if "hint" in names:
        hint = names["hint"]
        yield fact("oom.hint_line", value=True, quotes=run.quotes(hint.start, hint.end))


def _backend(head: re.Match[str]) -> str:
    device = head.groupdict().get("device")
    if device:
        return device.lower() if device in _NAMED else "other"
    return {"mps": "mps", "limit4g": "xpu"}.get(head.lastgroup or "", "cuda")


def _form(head: re.Match[str], names: Mapping[str, Clause]) -> str:
    if head.lastgroup == "limit4g":
        return "invalid-buffer"
    if "preempted" in names:
        return "preempted"
    return "exabyte" if "exabyte" in names else "allocator"


def _generation(backend: str, names: Mapping[str, Clause], tail: str) -> str | None:
    """Name the generation where the text shows it; a message cut too early shows none."""
    if backend in ("mps", "npu", "other"):
        return None if backend == "other" else backend
    old = "old_capacity" in names
    if backend == "xpu":
        new = "capacity" in names or "unallocated" in names
        return "xpu-new" if new else "xpu-old" if old else None
    number = _old_number(names, tail) if old else _new_number(names, tail)
    return f"{backend}-{number}" if number else None


def _old_number(names: Mapping[str, Clause], tail: str) -> int | None:
    if "cached" in names:
        return 2
    whole = "reserved" in names and tail.startswith(")")
    return 4 if "hint" in names else 3 if whole else None


def _new_number(names: Mapping[str, Clause], tail: str) -> int | None:
    if "typo" in names:
        return 5
    newest = "docs.pytorch.org" in tail or "PYTORCH_ALLOC_CONF=" in tail
    return None if "capacity" not in names else 7 if newest else 6


def _figures(run: Run, found: list[Clause]) -> Iterator[Fact]:
    """Yield the figures of the message, the first of each key."""
    seen: set[str] = set()
    for one in found:
        if one.name in ("index", "pool_index") and one.value and "oom.gpu_index" not in seen:
            seen.add("oom.gpu_index")
            yield fact("oom.gpu_index", int(one.value), run.quotes(one.start, one.end))
        key = _KEYS.get(one.name)
        size = parse_size(one.value) if key else None
        if key is None or size is None or key in seen:
            continue
        if one.name == "pool_allowed" and size.bytes >= _NO_CAP_BYTES:
            continue
        if one.name == "this_process" and size.bytes < NOT_COUNTED_BYTES:
            continue
        seen.add(key)
        yield fact(key, size.bytes, run.quotes(one.start, one.end), slack=size.slack_bytes)


def _processes(run: Run, found: list[Clause]) -> Iterator[Fact]:
    """Yield how many processes the message lists, their sum and the largest."""
    listed = [(one, parse_size(one.value)) for one in found if one.name == "process"]
    sized = [(size, run.quotes(one.start, one.end)) for one, size in listed if size]
    if not sized:
        return
    quotes = [quote for _, group in sized for quote in group]
    largest, of_largest = max(sized, key=lambda pair: pair[0].bytes)
    if largest.bytes < NOT_COUNTED_BYTES:
        yield fact("oom.listed_processes", len(sized), quotes)
        return
    total = sum(size.bytes for size, _ in sized)
    slack = sum(size.slack_bytes for size, _ in sized)
    yield fact("oom.listed_processes", len(sized), quotes)
    yield fact("oom.listed_processes_bytes", total, quotes, slack=slack)
    yield fact("oom.largest_process", largest.bytes, of_largest, slack=largest.slack_bytes)


def _caught(run: Run, at: int, end: int) -> Iterator[Fact]:
    """Yield oom.caught where the words around it say that the run went on."""
    begin = max(run.text.rfind("\n", 0, at) + 1, at - _LOOK_BACK)
    before = run.text[begin:at].lower()
    warned = before.rpartition("userwarning:" if "userwarning:" in before else "runtimewarning:")
    ended = before.endswith(("outofmemoryerror:", "runtimeerror:")) or any(
        mark in warned[2] for mark in ("warnings.warn(", "traceback(mostrecentcalllast)")
    )
    after = run.text[end : end + _LOOK_BACK].lower()
    if (
        (warned[1] and not ended)
        or any(mark in before for mark in _CAUGHT_BEFORE)
        or any(mark in after for mark in _CAUGHT_AFTER)
    ):
        line = run.line_at(at)
        quote = line_quote(run.document, line, column=run.column_at(at))
        yield fact("oom.caught", value=True, quotes=[quote])


def _absurd(run: Run, found: list[Clause], facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    for one in found:
        if one.name == "exabyte":
            return (fact("oom.absurd_size", value=True, quotes=run.quotes(one.start, one.end)),)
    return absurd_fact(facts)
