"""PyTorch's exception class whose message was cut off, broke over a line, or stands further down.

    torch.OutOfMemoryError: CUDA ou
    torch.OutOfMemoryError:
    CUDA out of memory. Tried to allocate 2.00 GiB ...          <- the message tells it
    OutOfMemoryError                  Traceback (most recent call last)    <- a notebook's heading

A class whose message is there says nothing of its own. `torch_oom` reads the messages themselves.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.signs import Hit, event_of, gpu

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack

_CLASS = "outofmemoryerror"
_NEXT_LINES = 2


@cache
def _torn_class() -> re.Pattern[str]:
    return re.compile(r"\btorch\.(?:cuda\.)?OutOfMemoryError(?P<rest>\s*(?::.*)?)$", re.IGNORECASE)


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
        found = _torn_class().search(text)
        if found is None or re.match(r"\s*(?:except|raise|if|from|import)\b", text):
            continue
        if _goes_on(haystack, index, taken):
            continue
        rest = "".join(found["rest"].split())
        if any(f":{name}outofmemory".startswith(rest) for name in ("CUDA", "HIP", "XPU")):
            backend = {"H": "hip", "X": "xpu"}.get(rest[1:2], "cuda")
            yield event_of(document, Hit(index, gpu((), "", backend, "allocator"), found))


def _goes_on(haystack: Haystack, index: int, taken: frozenset[int]) -> bool:
    """Say whether the class's message stands in the next lines, without a class of its own."""
    lines = haystack.document.lines
    following = range(index + 1, min(index + 1 + _NEXT_LINES, len(lines)))
    return any(at in taken and _CLASS not in lines[at].text.lower() for at in following)
