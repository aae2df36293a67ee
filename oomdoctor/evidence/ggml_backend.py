"""Which back end a build of ggml runs on: HIP builds print `cudaMalloc failed` and `ggml_cuda_...`.

ggml_cuda_init: found 1 ROCm devices:
  Device 0: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no, Wave Size: 32
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 0: cudaMalloc
    failed: out of memory
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact
from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.model.core import Quote

WORDS = ("rocm", "gfx", "hip", "radeon", "amd instinct")
_NAMED = (
    r"\bROCm\d*\b|\bgfx[0-9]{3,4}[a-f]?\b|ggml[_-]hip|\bhipMalloc|\bHIP (?:error|devices?)\b"
    r"|library=rocm|AMD (?:Radeon|Instinct)"
)


def respelled(haystack: Haystack, events: list[Event]) -> list[Event]:
    """Return the events; those of ggml in CUDA's words are HIP's where the log names AMD."""
    told = [one for one in events if one.family == "ggml" and _backend(one) == "cuda"]
    if not told or haystack.has("nvidia"):
        return events
    quote = _place(haystack)
    if quote is None:
        return events
    return [_as_hip(one, quote) if one in told else one for one in events]


def _place(haystack: Haystack) -> Quote | None:
    for index in haystack.telling(WORDS):
        line = haystack.document.lines[index]
        found = re.search(_NAMED, line.text[:4000])
        if found is not None:
            return haystack.document.quote(line, *found.span())
    return None


def _backend(event: Event) -> object:
    return next((one.value for one in event.failure.facts if one.key == "oom.backend"), None)


def _as_hip(event: Event, quote: Quote) -> Event:
    facts = tuple(
        fact("oom.backend", "hip", [quote]) if one.key == "oom.backend" else one
        for one in event.failure.facts
    )
    return event._replace(failure=replace(event.failure, facts=facts))
