"""Series of memory over steps: does it rise, by how much, and is it a running maximum.

```
step 0    memory_allocated 4 GB
step 100  memory_allocated 24 GB                                     allocated, 205 MiB per step
[iter 50] max_mem: 5000M                                             a running maximum
Test:  [1370/5000]  eta: 0:03:03  time: 0.0495  max mem: 14655      the same, in MiB (torchvision)
step 200  driver_allocated_memory 8.9 GB                             the driver's view (MPS)
[Rank 0] (after 10 iterations) memory (MB) | allocated: 1234.5 | max allocated: ...    Megatron
| 58%   70C    P2    67W / 200W |   1906MiB /  8111MiB |  ...        nvidia-smi again and again
[utils.py:838:see_memory_usage] CPU Virtual Memory:  used = 28.43 GB, percent = 22.6%  host
```
Values that were printed with a step count from two points on, others from three on, and only
where the lines are alike but for their numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from oomdoctor.evidence.growth_lines import points_of
from oomdoctor.evidence.moment import failure_index
from oomdoctor.model.core import Fact, Reading
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.growth_lines import Point
    from oomdoctor.model.core import Document, Quote, Value

ANCHORS = (
    "max_mem",
    "memory_",
    "_memory",
    "memory:",
    "memory=",
    "memory/",
    "memory (",
    "memory used",
    "memory usage",
    "memory allocated",
    "memory reserved",
    "virtual memory",
    "memallocated",
    " mem ",
    "mem:",
    "mem=",
    "mem/",
    "alloc=",
    "allocated=",
    "allocated:",
    "allocated():",
    *(f"allocated {digit}" for digit in range(1, 10)),
    *(f"memory {digit}" for digit in range(1, 10)),
    "mem after ",
    "mem at ",
    "reserved=",
    "reserved:",
    "ma ",
    "vram",
    "mib /",
    "rss",
)
_FEWEST_WITH_STEPS = 2
_FEWEST = 3
_PREFERENCE = ("allocated", "reserved", "driver", "device", "host", "running-max")
_QUOTED = 6
_STEADY_POINTS = 10
_STEADY_SHARE = 0.25
_STEADY_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one quantity in the order of the log."""

    quantity: str
    points: tuple[Point, ...]

    @property
    def span(self) -> int | None:
        """Return the steps between the first and the last point where they are known."""
        first, last = self.points[0].step, self.points[-1].step
        return None if first is None or last is None or last <= first else last - first


def read(document: Document) -> Reading:
    """Return growth.* of the most telling series before the failure."""
    best = max(series_of(document), key=_rank, default=None)
    return Reading() if best is None else Reading(facts=tuple(_facts(document, best)))


def series_of(document: Document) -> tuple[Series, ...]:
    """Return all series of the document up to its first failure."""
    failure = failure_index(document)
    end = len(document.lines) if failure is None else failure
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for point in points_of(document, end):
        groups.setdefault((point.quantity, point.alike, point.writer), []).append(point)
    found = [
        Series(quantity=quantity, points=tuple(part))
        for (quantity, _, _), points in groups.items()
        for part in _unbroken(points)
    ]
    return tuple(series for series in found if _tells(series))


def _unbroken(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Part a series where its steps start again (a second run in one log); same steps: last one."""
    part: list[Point] = []
    for point in points:
        if part and point.step is not None and part[-1].step is not None:
            if point.step < part[-1].step:
                yield part
                part = []
            elif point.step == part[-1].step:
                part.pop()
        part.append(point)
    if part:
        yield part


def _tells(series: Series) -> bool:
    count = len(series.points)
    if series.span is not None:
        return count >= _FEWEST_WITH_STEPS
    if count < _FEWEST or any(point.step is not None for point in series.points):
        return False
    if series.quantity != "device":
        return True
    # rows of several cards look alike: without an index only a steady rise is taken for a series
    return all(point.indexed for point in series.points) or _rises(series, strictly=True)


def _rises(series: Series, *, strictly: bool = False) -> bool:
    values = [point.bytes for point in series.points]
    pairs = pairwise(values)
    return all(b > a if strictly else b >= a for a, b in pairs) and values[-1] > values[0]


def _is_steady(series: Series) -> bool:
    """Say whether every point lies above the one before it by nearly the same amount.

    A warm-up levels off, and the peak of batches of many sizes jumps: neither is steady.
    """
    points = series.points
    if not all(point.counted for point in points):
        return False
    rises = [(b.bytes - a.bytes, a.slack_bytes + b.slack_bytes) for a, b in pairwise(points)]
    usual = sorted(rise for rise, _ in rises)[len(rises) // 2]
    near = [abs(rise - usual) <= _STEADY_SHARE * usual + slack for rise, slack in rises]
    whole = points[-1].bytes - points[0].bytes
    return min(rise for rise, _ in rises) > 0 and all(near) and whole >= _STEADY_BYTES


def _rank(series: Series) -> tuple[bool, int, int]:
    """Order series: with steps first, then by what they count, then by their length."""
    place = _PREFERENCE.index(series.quantity)
    return series.span is not None, -place, len(series.points)


def _facts(document: Document, series: Series) -> Iterator[Fact]:
    points = series.points
    first, last = points[0], points[-1]
    shown = (
        points if len(points) <= _QUOTED else (*points[: _QUOTED // 2], *points[-_QUOTED // 2 :])
    )
    quotes = tuple(document.quote(document.lines[point.at]) for point in shown)
    ends = (quotes[0], quotes[-1])
    yield _fact("growth.quantity", series.quantity, quotes)
    yield _fact("growth.points", len(points), quotes)
    yield _fact("growth.first", first.bytes, quotes[:1], slack=first.slack_bytes)
    yield _fact("growth.last", last.bytes, quotes[-1:], slack=last.slack_bytes)
    yield _fact("growth.monotone", _rises(series), quotes)
    if len(points) >= _STEADY_POINTS:
        yield _fact("growth.steady", _is_steady(series), quotes)
    span = series.span
    if span is not None:
        slack = (first.slack_bytes + last.slack_bytes) / span
        yield _fact("growth.span", span, ends)
        yield _fact("growth.per_step", round((last.bytes - first.bytes) / span), ends, slack=slack)


def _fact(key: str, value: Value, quotes: Sequence[Quote], *, slack: float = 0) -> Fact:
    return Fact(key=key, value=value, slack=slack, quotes=tuple(quotes))
