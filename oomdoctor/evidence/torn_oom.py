"""PyTorch's exception class whose message was cut off, broke over a line, or stands further down.

    torch.OutOfMemoryError: CUDA ou
    torch.OutOfMemoryError:
    CUDA out of memory. Tried to allocate 2.00 GiB ...          <- the message tells it
    OutOfMemoryError                  Traceback (most recent call last)    <- a notebook's heading
    torch.OutOfMemoryError: no room for the expert weights       <- words of a program's own
    OutOfMemoryError: HIP ...

A class whose message is there says nothing of its own. `torch_oom` reads the messages themselves.
PyTorch raises the class for devices alone, so that it stands for one whatever follows it; without
`torch` before it, it may be another library's and must name a device, or nothing at all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.plain_oom import complains
from oomdoctor.evidence.signs import Hit, event_of, gpu

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack

_CLASS = "outofmemoryerror"
_NEXT_LINES = 2
_BACKENDS = {
    "cuda": "cuda",
    "gpu": "cuda",
    "hip": "hip",
    "xpu": "xpu",
    "npu": "npu",
    "musa": "musa",
}


@cache
def _torn_class() -> re.Pattern[str]:
    return re.compile(
        r"(?P<before>(?:.*[^\w.])?)(?P<torch>torch\.(?:cuda\.)?)?OutOfMemoryError"
        r"(?P<rest>\s*(?::.*)?)$",
        re.IGNORECASE,
    )


@cache
def _written() -> re.Pattern[str]:
    """Match what stands before a class that is reported, and not part of code or prose."""
    return re.compile(r"(?!\s*#)(?:.*[]:>|)])?\W*$")


@cache
def _heading() -> re.Pattern[str]:
    return re.compile(
        r"^\W*(?:torch\.(?:cuda\.)?)?OutOfMemoryError\s+Traceback \(most recent call last\)"
    )


def events_in(
    haystack: Haystack, messages: Sequence[Event], taken: frozenset[int]
) -> Iterator[Event]:
    """Yield events for classes without a message; lines in `taken` are the messages' own."""
    document = haystack.document
    last = max((event.first for event in messages), default=-1)
    for index in haystack.lines_with((_CLASS,)):
        if index in taken:
            continue
        text = document.lines[index].text
        heading = _heading().search(text)
        if heading is not None:
            if index > last:
                yield event_of(document, Hit(index, gpu((), "", "cuda", "allocator"), heading))
            continue
        found = _torn_class().match(text)
        if found is None or not _written().match(found["before"]):
            continue
        backend = _backend(found, alone=not messages)
        if backend is not None and not _goes_on(haystack, index, taken):
            yield event_of(document, Hit(index, gpu((), "", backend, "allocator"), found))


def _backend(found: re.Match[str], *, alone: bool) -> str | None:
    """Return the device that a class stands for, or None where it may not be PyTorch's."""
    rest = "".join(found["rest"].split()).lower()
    if not alone and found["torch"] is None:
        return None
    for name, backend in _BACKENDS.items():
        if f":{name}outofmemory".startswith(rest):
            return backend
    if not alone or not complains(found.string, found):
        return None
    named = next((one for one in _BACKENDS if rest.startswith(f":{one}")), None)
    return _BACKENDS[named] if named else "cuda" if found["torch"] else None


def _goes_on(haystack: Haystack, index: int, taken: frozenset[int]) -> bool:
    """Say whether the class's message stands in the next lines, without a class of its own."""
    lines = haystack.document.lines
    following = range(index + 1, min(index + 1 + _NEXT_LINES, len(lines)))
    return any(at in taken and _CLASS not in lines[at].text.lower() for at in following)
