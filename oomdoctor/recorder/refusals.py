"""Failures that a process told of and its output does not show: as if it had printed them.

A program that catches the error, or writes its log elsewhere (torchrun's --redirects), shows none.
"""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING

from oomdoctor.evidence.source import source_of_text
from oomdoctor.reading import read_one
from oomdoctor.record import replace
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Fact, Failure, Quote
    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.quoting import Quoting
    from oomdoctor.recorder.told import OutOfMemory, Process

_OURS = "/oomdoctor/virtual/"


def failures_inside(run: Run, quoting: Quoting) -> Iterator[Failure]:
    """Yield the failure of each process that ran out of memory and did not get over it."""
    for process in run.working:
        oom = next((one for one in reversed(process.ooms) if not one.went_on), None)
        if oom is None:
            continue
        quote = quoting.event(process.key, oom.line, "requested_bytes")
        source = source_of_text(_as_printed(process, oom), name=quote.artifact)
        for failure in read_one(source).reading.failures[:1]:
            yield _quoted(failure, quote, process, oom)


def _quoted(failure: Failure, quote: Quote, process: Process, oom: OutOfMemory) -> Failure:
    """Return a failure whose facts stand where the process told of them, with all their digits."""
    exact = {
        "oom.requested": oom.requested_bytes,
        "oom.free": oom.free_bytes,
        "oom.capacity": oom.card_bytes,
        "torch.allocated": oom.allocated_bytes,
    }

    def told(fact: Fact) -> Fact:
        value = exact.get(fact.key)
        if value is None:
            return replace(fact, quotes=(quote,))
        return replace(fact, value=value, slack=0, quotes=(quote,))

    return replace(
        failure,
        order=oom.line,
        line_quote=quote,
        facts=tuple(map(told, failure.facts)),
        rank=process.rank,
        when=oom.t,
    )


def _as_printed(process: Process, oom: OutOfMemory) -> str:
    """Return what Python prints of such an error."""
    lines = ["Traceback (most recent call last):"]
    for path, function, number in reversed(oom.frames):
        if _OURS in path:
            continue
        lines.append(f'  File "{path}", line {number}, in {function}')
        code = linecache.getline(path, number).strip()
        lines += [f"    {code}"] if code else []
    text = oom.text or _text_of_error(process, oom) or _composed(oom)
    prefix = "" if oom.exception.count(".") or oom.exception == "MemoryError" else "torch."
    known = prefix if oom.exception == "OutOfMemoryError" else ""
    return "\n".join([*lines, f"{known}{oom.exception}: {text}", ""])


def _text_of_error(process: Process, oom: OutOfMemory) -> str:
    found = (one for one in process.errors if one.t >= oom.t and one.exception == oom.exception)
    return next((one.text for one in found), "")


def _composed(oom: OutOfMemory) -> str:
    """Return the words of the allocator for the figures that were told."""

    def size(count: int | None) -> str:
        return format_size(count or 0)

    parts = [f"CUDA out of memory. Tried to allocate {size(oom.requested_bytes)}."]
    if oom.card_bytes is not None and oom.free_bytes is not None:
        parts.append(
            f"GPU {oom.device or 0} has a total capacity of {size(oom.card_bytes)} of which"
            f" {size(oom.free_bytes)} is free."
        )
    if oom.allocated_bytes is not None and oom.reserved_bytes is not None:
        rest = max(0, oom.reserved_bytes - oom.allocated_bytes)
        parts.append(
            f"Of the allocated memory {size(oom.allocated_bytes)} is allocated by PyTorch, and"
            f" {size(rest)} is reserved by PyTorch but unallocated."
        )
    return " ".join(parts)
