"""The buffers of a reduction over many elements, which several blocks of a card share.

A sum whose blocks are too many for one output keeps partial results and counters in global
memory: `global_memory_size` and `semaphore_size` of `ReduceConfig` in torch's
ATen/native/cuda/Reduce.cuh. What is here decides as `setReduceConfig` does there, on dimensions
in the order in which TensorIterator puts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WARP = 32
MAX_THREADS = 512
THREADS_PER_PROCESSOR = 2048
INPUT_VECTOR = 4
MIN_PER_THREAD, MAX_PER_THREAD = 16, 256


class Reduction(NamedTuple):
    """What is reduced: sizes and strides (in elements) of the input, and which dimensions go.

    `input_bytes` is an element's width, `partial_bytes` that of a partial result.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    reduced: tuple[bool, ...]
    input_bytes: int
    partial_bytes: int
    offset: int = 0


class _Dimension(NamedTuple):
    size: int
    stride: int
    out_stride: int  # 0 where it is reduced


def buffers(reduction: Reduction, processors: int) -> tuple[int, ...]:
    """Return the bytes of partial results and of counters; nothing where one block is enough."""
    dimensions = _ordered(reduction)
    outputs = inputs = 1
    for one in dimensions:
        if one.out_stride:
            outputs *= one.size
        else:
            inputs *= one.size
    if inputs == 0 or outputs == 0:
        return ()
    return _Config(dimensions, outputs, inputs, reduction, processors).buffers()


class _Config:
    """How threads and blocks share a reduction."""

    def __init__(
        self,
        dimensions: list[_Dimension],
        outputs: int,
        inputs: int,
        reduction: Reduction,
        processors: int,
    ) -> None:
        self._outputs, self._inputs = outputs, inputs
        self._partial = reduction.partial_bytes
        self._vector = 1
        self._step_input = self._step_output = 1
        self._ctas = 1
        across = self._blocks(dimensions, reduction)
        self._share(processors, across=across)

    def _blocks(self, dimensions: list[_Dimension], reduction: Reduction) -> bool:
        """Choose the threads of a block; say whether its rows run along the reduced elements."""
        kept = sum(1 for one in dimensions if not one.out_stride)
        count = len(dimensions)
        along = True
        first, second, stride = 1, 1, 1
        if dimensions:
            along = kept == count or dimensions[0].stride < dimensions[kept].stride
            first, second = self._inputs, self._outputs
            stride = dimensions[0].stride
            if not along:
                first, second = second, first
                stride = dimensions[kept].stride
        if stride == 1:
            if along and first > 128 and count == 1:
                first //= INPUT_VECTOR
            elif not along:
                self._vector = _output_vector(dimensions, kept, reduction.offset)
                first //= self._vector
        limit = MAX_THREADS // self._vector
        across = _power(first) if first < limit else limit
        down = _power(second) if second < limit else limit
        self._width = min(across, WARP)
        self._height = min(down, limit // self._width)
        self._width = min(across, limit // self._height)
        return along

    def _share(self, processors: int, *, across: bool) -> None:
        """Share the inputs among lanes, warps and blocks."""
        if across:
            self._step_input *= self._width
        else:
            self._step_output *= self._width
        self._across = across
        grid_inputs = self._per_thread() >= min(self._height * 16, MAX_PER_THREAD)
        if grid_inputs:
            self._step_input *= self._height
        else:
            self._step_output *= self._height
        target = processors * (THREADS_PER_PROCESSOR // (self._width * self._height))
        grid = self._grid()
        if grid_inputs and self._per_thread() >= MAX_PER_THREAD and grid <= target:
            values = self._per_thread()
            most = max(
                min(-(-target // grid), -(-values // MIN_PER_THREAD)), -(-values // MAX_PER_THREAD)
            )
            self._ctas = most

    def _per_thread(self) -> int:
        return -(-self._inputs // self._step_input)

    def _grid(self) -> int:
        return -(-(self._outputs // self._vector) // self._step_output)

    def buffers(self) -> tuple[int, ...]:
        """Return the bytes of partial results and of counters."""
        if self._ctas <= 1:
            return ()
        size = self._partial * self._outputs * self._ctas
        if not self._across:
            size *= self._width * self._vector
        return size, 4 * self._grid()


def _power(number: int) -> int:
    """Return the greatest power of two that is not greater."""
    return 1 << (number.bit_length() - 1) if number > 0 else 1


def _output_vector(dimensions: Sequence[_Dimension], kept: int, offset: int) -> int:
    """Return how many neighbouring outputs a thread makes."""
    vector = 4
    others = [one.stride for place, one in enumerate(dimensions) if place != kept]
    for number in (offset, dimensions[kept].size, *others):
        while number % vector:
            vector //= 2
    return vector


def _ordered(reduction: Reduction) -> list[_Dimension]:
    """Return the dimensions as TensorIterator has them: the reduced first, neighbours joined."""
    out_stride = 1
    dimensions: list[_Dimension] = []
    for size, stride, gone in zip(
        reversed(reduction.sizes),
        reversed(reduction.strides),
        reversed(reduction.reduced),
        strict=True,
    ):
        dimensions.append(_Dimension(size, stride, 0 if gone else out_stride))
        if not gone:
            out_stride *= max(1, size)
    for start in range(1, len(dimensions)):
        place = start
        for before in range(start - 1, -1, -1):
            order = _order(dimensions[before], dimensions[place])
            if order > 0:
                dimensions[before], dimensions[place] = dimensions[place], dimensions[before]
                place = before
            elif order < 0:
                break
    joined: list[_Dimension] = []
    for one in dimensions:
        if joined and _join(joined[-1], one):
            last = joined.pop()
            base = one if last.size == 1 else last
            joined.append(_Dimension(last.size * one.size, base.stride, base.out_stride))
        else:
            joined.append(one)
    return [] if len(joined) == 1 and joined[0].size == 1 else joined


def _order(left: _Dimension, right: _Dimension) -> int:
    """Say which dimension comes first: below 0 the left one, above 0 the right one."""
    if (left.out_stride == 0) != (right.out_stride == 0):
        return 1 if right.out_stride == 0 else -1
    for one, other in ((left.out_stride, right.out_stride), (left.stride, right.stride)):
        if one == 0 or other == 0:
            continue
        if one != other:
            return -1 if one < other else 1
        if left.size > right.size:
            return 1
    return 0


def _join(left: _Dimension, right: _Dimension) -> bool:
    if left.size == 1 or right.size == 1:
        return True
    return (
        left.size * left.stride == right.stride and left.size * left.out_stride == right.out_stride
    )
