"""Undoing the allocator's rounding, against a small reference of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.memory.rounding import Interval, tensors
from oomdoctor.units import format_size, parse_size

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def reference_segment(request: int) -> int:
    """Take a new segment as torch 2.13 does (c10/cuda/CUDACachingAllocator.cpp)."""
    size = max(512, (request + 511) // 512 * 512)
    if size <= 1 * MIB:
        return 2 * MIB
    if size < 10 * MIB:
        return 20 * MIB
    return (size + 2 * MIB - 1) // (2 * MIB) * (2 * MIB)


def holds(intervals: tuple[Interval, ...], size: int) -> bool:
    return any(interval.holds(size) for interval in intervals)


@given(size=st.integers(min_value=1, max_value=200 * GIB))
def test_the_inverse_of_rounding_holds_the_tensor(size: int) -> None:
    printed = parse_size(format_size(reference_segment(size)))

    assert printed is not None
    assert holds(tensors(printed.bytes, slack=printed.slack_bytes), size)


@given(size=st.integers(min_value=1, max_value=200 * GIB))
def test_a_block_printed_by_expandable_segments_holds_the_tensor(size: int) -> None:
    block = (size + 511) // 512 * 512

    assert holds(tensors(block, slack=0, expandable=True), size)


@given(size=st.integers(min_value=10 * MIB, max_value=200 * GIB))
def test_no_tensor_outside_the_inverse_prints_alike(size: int) -> None:
    segment = reference_segment(size)

    (interval,) = [i for i in tensors(segment, slack=0) if i.holds(size)]

    assert reference_segment(interval.low) == segment
    assert reference_segment(interval.high) == segment
    assert reference_segment(interval.high + 1) != segment


@pytest.mark.parametrize(
    ("printed", "small", "large"),
    [(2 * MIB, 1, 1 * MIB), (20 * MIB, 1 * MIB + 1, 10 * MIB - 512)],
)
def test_small_segments_hide_the_size(printed: int, small: int, large: int) -> None:
    first = tensors(printed, slack=5 * KIB)[0]

    assert (first.low, first.high) == (small, large)


def test_other_allocators_print_the_tensor_itself() -> None:
    (interval,) = tensors(3 * MIB, slack=100, caching=False)

    assert (interval.low, interval.high) == (3 * MIB - 100, 3 * MIB + 100)


def test_a_size_that_is_no_segment_is_a_block() -> None:
    (interval,) = tensors(3 * MIB + 512, slack=0)

    assert interval.why == "up to the next 512 bytes"
