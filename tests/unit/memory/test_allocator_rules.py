"""Each rule of the allocator model, with numbers worked out by hand."""

from __future__ import annotations

import pytest

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card

KIB, MIB = 1 << 10, 1 << 20


def allocator(settings: str = "", capacity: int = 1000 * MIB) -> Allocator:
    return Allocator(settings, driver=Card(capacity, first_address=0))


@pytest.mark.parametrize(
    ("settings", "asked", "rounded"),
    [
        ("", 1, 512),
        ("", 512, 512),
        ("", 513, 1024),
        ("", 3 * MIB + 1, 3 * MIB + 512),
        ("roundup_power2_divisions:4", 1200, 1536),
        ("roundup_power2_divisions:4", 2048, 2048),
        ("roundup_power2_divisions:4", 2049, 2560),
        ("roundup_power2_divisions:4", 5 * MIB, 5 * MIB),
        ("roundup_power2_divisions:4", 5 * MIB + 1, 6 * MIB),
        ("roundup_power2_divisions:1", 5 * MIB + 1, 5 * MIB + 512),
        ("roundup_power2_divisions:[4:2,>:8]", 3 * MIB + 1, 4 * MIB),
        ("roundup_power2_divisions:[4:2,>:8]", 9 * MIB + 1, 10 * MIB),
        ("roundup_power2_divisions:[16:0,64:4]", 9 * MIB + 1, 9 * MIB + 512),
        ("roundup_power2_divisions:[16:0,64:4]", 65 * MIB, 80 * MIB),
    ],
)
def test_requests_are_rounded(settings: str, asked: int, rounded: int) -> None:
    assert rounded == allocator(settings).alloc(asked).size


@pytest.mark.parametrize(
    ("settings", "asked", "reserved"),
    [
        ("", 1, 2 * MIB),
        ("", MIB, 2 * MIB),
        ("", MIB + 1, 20 * MIB),
        ("", 10 * MIB - 512, 20 * MIB),
        ("", 10 * MIB, 10 * MIB),
        ("", 21 * MIB, 22 * MIB),
        ("large_segment_size_mb:64", 2 * MIB, 64 * MIB),
        ("large_segment_size_mb:64", 11 * MIB, 12 * MIB),
    ],
)
def test_a_miss_asks_for_a_segment_of_its_class(settings: str, asked: int, reserved: int) -> None:
    cache = allocator(settings)

    cache.alloc(asked)

    assert reserved == cache.reserved


def test_small_and_large_requests_do_not_share_segments() -> None:
    cache = allocator()
    cache.free(cache.alloc(2 * MIB))

    cache.alloc(MIB)

    assert cache.reserved == 22 * MIB


def test_a_free_block_serves_its_own_stream_only() -> None:
    cache = allocator()
    cache.free(cache.alloc(2 * MIB, stream=0))

    cache.alloc(2 * MIB, stream=7)

    assert cache.reserved == 40 * MIB


def test_the_smallest_free_block_that_fits_is_taken() -> None:
    cache = allocator()
    large, small = cache.alloc(40 * MIB), cache.alloc(30 * MIB)
    expected = small.address
    cache.free(large)
    cache.free(small)

    assert expected == cache.alloc(29 * MIB).address


def test_of_equal_free_blocks_the_lower_address_is_taken() -> None:
    cache = allocator()
    first, second = cache.alloc(30 * MIB), cache.alloc(30 * MIB)
    cache.free(second)
    cache.free(first)

    assert first.address == cache.alloc(30 * MIB).address


@pytest.mark.parametrize(
    ("asked", "handed_out"), [(19 * MIB - 512, 19 * MIB - 512), (19 * MIB, 20 * MIB)]
)
def test_up_to_a_mib_stays_with_a_large_block(asked: int, handed_out: int) -> None:
    cache = allocator()
    cache.free(cache.alloc(20 * MIB))

    block = cache.alloc(asked)

    assert (handed_out, asked) == (block.size, block.requested)


def test_the_rest_of_a_small_segment_is_split_off_to_the_last_512_bytes() -> None:
    cache = allocator()
    first, second = cache.alloc(MIB), cache.alloc(MIB - 512)

    last = cache.alloc(1)

    assert (first.address + 2 * MIB - 512, 2 * MIB) == (last.address, cache.reserved)
    assert first.address + MIB == second.address


def test_freed_neighbours_become_one_block() -> None:
    cache = allocator()
    blocks = [cache.alloc(4 * MIB) for _ in range(5)]
    for block in (blocks[1], blocks[3], blocks[2]):
        cache.free(block)

    block = cache.alloc(12 * MIB)

    assert (blocks[1].address, 20 * MIB) == (block.address, cache.reserved)


def test_empty_cache_gives_back_what_is_wholly_free() -> None:
    cache = allocator()
    kept, whole = cache.alloc(2 * MIB), cache.alloc(30 * MIB)
    cache.free(cache.alloc(3 * MIB))
    cache.free(whole)

    cache.empty_cache()

    assert (20 * MIB, kept.size) == (cache.reserved, cache.allocated)


def test_a_block_cannot_be_freed_twice() -> None:
    cache = allocator()
    block = cache.alloc(1)
    cache.free(block)

    with pytest.raises(ValueError, match="not allocated"):
        cache.free(block)


def test_figures_tell_blocks_requests_and_segments_apart() -> None:
    cache = allocator()
    cache.free(cache.alloc(20 * MIB))
    cache.alloc(19 * MIB + 1)

    stats = cache.memory_stats()

    assert stats["allocated_bytes.all.current"] == 20 * MIB
    assert stats["requested_bytes.large_pool.current"] == 19 * MIB + 1
    assert stats["reserved_bytes.all.peak"] == 20 * MIB
    assert (stats["allocation.all.allocated"], stats["allocation.all.freed"]) == (2, 1)
    assert stats["segment.large_pool.current"] == 1
    assert stats["max_split_size"] == -1


def test_peaks_and_totals_can_start_anew() -> None:
    cache = allocator()
    kept = cache.alloc(2 * MIB)
    cache.free(cache.alloc(4 * MIB))
    before = cache.memory_stats()["allocated_bytes.all.peak"]

    cache.stats.reset_peaks()
    cache.stats.reset_accumulated()

    stats = cache.memory_stats()
    assert (6 * MIB, kept.size) == (before, stats["allocated_bytes.all.peak"])
    assert (stats["allocation.all.allocated"], stats["num_device_alloc"]) == (0, 0)
    assert (
        stats["allocation.all.current"],
        stats["inactive_split_bytes.all.current"],
    ) == (1, 18 * MIB)


def test_settings_can_change_while_blocks_live() -> None:
    cache = allocator("expandable_segments:True")
    cache.free(cache.alloc(30 * MIB))

    cache.configure("")
    cache.alloc(30 * MIB)

    assert cache.reserved == 40 * MIB + 30 * MIB
