"""Small equal processes in an allocator's message: the contexts of ranks that work elsewhere.

GPU 0 has a total capacity of 31.74 GiB ... Process 101553 has 1.19 GiB memory in use. Process
101552 has 1.19 GiB memory in use. ... this process has 13.82 GiB memory in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.evidence.squeeze import Run
    from oomdoctor.evidence.torch_oom_text import Clause
    from oomdoctor.model.core import Fact

NOT_COUNTED_BYTES = 1 << 20
"""A process with less than that is one whose memory NVML does not tell, as from a container."""

_TWINS = 3
_TWIN_LOW_BYTES, _TWIN_HIGH_BYTES = 200 << 20, 2 << 30
_TWIN_SHARE = 0.05
_BESIDE = 3
_MOST = 256
"""Contexts of one program's ranks on a card differ by less than this, and beside them the rank
that works there holds several times as much."""


def small_twins(run: Run, found: list[Clause]) -> Iterator[Fact]:
    """Yield how many listed processes are small and equal, beside one that is much larger."""
    listed = [(one, parse_size(one.value)) for one in found if one.name == "process"]
    sized = sorted((size.bytes, one.start, one.end) for one, size in listed if size)
    if len(sized) < _TWINS:
        return
    own = [parse_size(one.value) for one in found if one.name == "this_process"]
    largest = max(sized[-1][0], *(size.bytes for size in own if size), 0)
    small = [row for row in sized if _TWIN_LOW_BYTES <= row[0] <= _TWIN_HIGH_BYTES][:_MOST]
    groups = [
        [row for row in small[at:] if row[0] <= small[at][0] * (1 + _TWIN_SHARE)]
        for at in range(len(small))
    ]
    twins = max(groups, key=len, default=[])
    if len(twins) < _TWINS or twins[-1][0] * _BESIDE > largest:
        return
    quotes = [quote for _, start, end in twins for quote in run.quotes(start, end)]
    yield fact("oom.small_twins", len(twins), quotes)
    yield fact("oom.small_twins_bytes", sum(row[0] for row in twins), quotes)
