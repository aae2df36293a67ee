"""Expandable segments of the allocator model."""

from __future__ import annotations

import pytest

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.memory.allocator_snapshot import segments

MIB = 1 << 20


def allocator(settings: str = "", capacity: int = 1000 * MIB) -> Allocator:
    text = f"expandable_segments:True{settings}"
    return Allocator(text, driver=Card(capacity, first_address=0))


@pytest.mark.parametrize(
    ("settings", "asked", "mapped"),
    [
        ("", 1, 2 * MIB),
        ("", 3 * MIB, 20 * MIB),
        ("", 21 * MIB, 40 * MIB),
        (",large_segment_size_mb:64", 21 * MIB, 64 * MIB),
    ],
)
def test_whole_pages_are_mapped(settings: str, asked: int, mapped: int) -> None:
    cache = allocator(settings)

    cache.alloc(asked)

    assert mapped == cache.reserved


def test_a_segment_grows_at_its_end() -> None:
    cache = allocator()
    first = cache.alloc(30 * MIB)

    second = cache.alloc(30 * MIB)

    assert (first.address + 30 * MIB, 60 * MIB) == (second.address, cache.reserved)
    assert [one["total_size"] for one in segments(cache)] == [60 * MIB]


def test_each_stream_has_its_own_range() -> None:
    cache = allocator()

    first, second = cache.alloc(30 * MIB), cache.alloc(30 * MIB, stream=3)

    # 1 1/8 of 1000 MiB in pages of 20 MiB
    assert second.address - first.address == 57 * 20 * MIB


def test_even_a_little_is_split_off() -> None:
    cache = allocator()
    cache.free(cache.alloc(30 * MIB))

    assert cache.alloc(30 * MIB - 512).size == 30 * MIB - 512


def test_only_whole_free_pages_are_unmapped() -> None:
    cache = allocator()
    blocks = [cache.alloc(25 * MIB) for _ in range(4)]
    cache.free(blocks[1])
    cache.free(blocks[2])

    cache.empty_cache()

    # 25 to 75 MiB are free, of which the pages from 40 to 60 MiB
    assert cache.reserved == 80 * MIB


def test_a_gap_is_filled_again_before_the_segment_grows() -> None:
    cache = allocator()
    blocks = [cache.alloc(20 * MIB) for _ in range(4)]
    cache.free(blocks[1])
    cache.empty_cache()

    assert cache.alloc(20 * MIB).address == 20 * MIB


def test_what_was_mapped_before_the_memory_ran_out_is_not_lost() -> None:
    cache = allocator(capacity=100 * MIB)
    kept = cache.alloc(50 * MIB)

    with pytest.raises(OutOfMemoryError):
        cache.alloc(70 * MIB)

    assert (cache.reserved, cache.allocated) == (60 * MIB, 50 * MIB)
    cache.free(kept)
    cache.empty_cache()
    assert (cache.reserved, segments(cache)) == (0, [])


def test_the_fraction_may_be_exceeded_by_less_than_a_page() -> None:
    cache = allocator(",per_process_memory_fraction:0.05")

    cache.alloc(41 * MIB)

    assert cache.reserved == 60 * MIB
