"""How the allocations of a job grow with rows and length, learned from a few of its layers.

Layers are alike, so three traces of a model with two of them (as it is, with more rows, with longer
rows) tell for every allocation whether its bytes grow with the rows, with the length, with its
square, or not at all. The stream of the whole model then gives that of any other batch: the same
events with other sizes, put through the allocator once more. A whole trace elsewhere checks it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.memory.stream import Allocation
from oomdoctor.memory.stream_balance import folded
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from oomdoctor.estimating.shapes import Shape
    from oomdoctor.memory.stream import Stream

Key = tuple[str, str, str, str, int]
NEAR = 0.004
"""Sizes that are so near to a power of the change are that power: rounding is all there is."""
POWERS = (0, 1, 2)


class Law(NamedTuple):
    """An allocation's bytes at a base shape, and what it had with more rows, and with longer ones.

    As a power of rows or of length where it is one, else as a line through both points.
    """

    size: int
    rows_power: int | None
    length_power: int | None
    rows_slope: float
    length_slope: float

    def at(self, rows: float, length: float) -> int:
        """Return the bytes where rows and length are so many times those of the base."""
        by_rows = _grown(rows, self.rows_power, self.rows_slope)
        by_length = _grown(length, self.length_power, self.length_slope)
        return max(1, round(self.size * by_rows * by_length))


class Growth:
    """The laws of all allocations of a stream, for other batches of the same job."""

    def __init__(self, stream: Stream, base: Shape, laws: Mapping[Key, Law]) -> None:
        """Look the law of every allocation up once."""
        self._stream = stream
        self._base = base
        self._laws = list(_found(stream.allocations, laws))

    def at(self, shape: Shape) -> Stream:
        """Return the stream of another batch."""
        rows = shape.rows / self._base.rows
        length = (shape.length or 1) / (self._base.length or 1)
        made = tuple(
            one if law is None else _sized(one, law.at(rows, length))
            for one, law in zip(self._stream.allocations, self._laws, strict=True)
        )
        return replace(self._stream, allocations=made)


def laws_of(
    base: Stream, more_rows: Stream, longer: Stream | None, *, rows: float, length: float
) -> dict[Key, Law]:
    """Return the law of each allocation from three streams of the same few layers.

    `rows` and `length` are how many times those of the base the other two have.
    """
    wide = {key: one.size for key, one in _keyed(more_rows.allocations)}
    long = {} if longer is None else {key: one.size for key, one in _keyed(longer.allocations)}
    return {
        key: _law(one.size, wide.get(key), long.get(key), rows=rows, length=length)
        for key, one in _keyed(base.allocations)
    }


def _law(size: int, wide: int | None, long: int | None, *, rows: float, length: float) -> Law:
    rows_power, rows_slope = _power(size, wide, rows)
    length_power, length_slope = _power(size, long, length)
    return Law(size, rows_power, length_power, rows_slope, length_slope)


def _power(size: int, other: int | None, times: float) -> tuple[int | None, float]:
    if other is None or other == size or times == 1 or not size:
        return 0, 0.0
    share = other / size
    for power in POWERS:
        if abs(share - times**power) <= NEAR * times**power:
            return power, 0.0
    return None, (share - 1) / (times - 1)


def _grown(times: float, power: int | None, slope: float) -> float:
    if power is not None:
        return times**power if power else 1.0
    return max(0.0, 1 + slope * (times - 1))


def _keyed(allocations: Sequence[Allocation]) -> Iterator[tuple[Key, Allocation]]:
    """Yield each allocation under what stays the same with more layers, numbered within a layer."""
    seen: Counter[tuple[str, str, str, str]] = Counter()
    for one in allocations:
        place = (one.phase, one.part, one.module, one.operator)
        yield (one.phase, one.part, folded(one.module), one.operator, seen[place]), one
        seen[place] += 1


def _found(allocations: Sequence[Allocation], laws: Mapping[Key, Law]) -> Iterator[Law | None]:
    """Yield the law of each allocation; one that the few layers do not have goes by its size.

    Outside of layers (an optimizer's step, say) more layers make more allocations of the same
    operator: they follow the law of the one that has their size, else the nearest before them.
    """
    by_size: dict[tuple[object, ...], Law] = {}
    last: dict[tuple[object, ...], Law] = {}
    for key, law in laws.items():
        by_size.setdefault((*key[:4], law.size), law)
        last[key[:4]] = law
    for key, one in _keyed(allocations):
        known = laws.get(key)
        if known is None or known.size != one.size:
            known = by_size.get((*key[:4], one.size), known) or last.get(key[:4])
        yield None if known is None else known._replace(size=one.size)


def _sized(one: Allocation, size: int) -> Allocation:
    return Allocation(size, *one[1:])
