"""Several streams, and private pools, in the allocator model."""

from __future__ import annotations

import pytest

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError

MIB = 1 << 20
POOL = (0, 1)


def allocator(settings: str = "", capacity: int = 1000 * MIB) -> Allocator:
    return Allocator(settings, driver=Card(capacity, first_address=0))


def active(cache: Allocator) -> int:
    return cache.memory_stats()["active_bytes.all.current"]


def test_a_block_that_another_stream_uses_waits_when_it_is_freed() -> None:
    cache = allocator()
    block = cache.alloc(30 * MIB)
    cache.record_stream(block, 5)

    cache.free(block)

    assert (block.state, cache.allocated, active(cache)) == ("active_awaiting_free", 0, 30 * MIB)


def test_it_returns_before_the_next_allocation() -> None:
    cache = allocator()
    block = cache.alloc(30 * MIB)
    cache.record_stream(block, 5)
    cache.free(block)

    assert block.address == cache.alloc(30 * MIB).address


def test_it_stays_away_while_the_stream_is_busy() -> None:
    cache = allocator()
    block = cache.alloc(30 * MIB)
    cache.record_stream(block, 5)
    cache.busy.add(5)
    cache.free(block)

    second = cache.alloc(30 * MIB)
    cache.busy.clear()
    third = cache.alloc(30 * MIB)

    assert (second.address, third.address) == (30 * MIB, 0)


def test_all_events_are_waited_for_before_memory_is_out() -> None:
    cache = allocator(capacity=50 * MIB)
    block = cache.alloc(30 * MIB)
    cache.record_stream(block, 5)
    cache.busy.add(5)
    cache.free(block)

    cache.alloc(40 * MIB)

    stats = cache.memory_stats()
    assert (stats["num_sync_all_streams"], stats["num_alloc_retries"]) == (1, 1)


def test_its_own_stream_needs_no_event() -> None:
    cache = allocator()
    block = cache.alloc(30 * MIB, stream=5)
    cache.record_stream(block, 5)

    cache.free(block)

    assert active(cache) == 0


def test_a_private_pool_keeps_its_memory_to_itself() -> None:
    cache = allocator()
    cache.begin_pool(POOL)
    cache.free(cache.alloc(30 * MIB))
    cache.end_pool(POOL)

    cache.alloc(30 * MIB)
    cache.empty_cache()

    assert cache.reserved == 60 * MIB
    assert cache.memory_stats()["reserved_bytes_by_private_pools.0_1.all.current"] == 30 * MIB


def test_a_released_pool_gives_its_memory_back_and_is_gone() -> None:
    cache = allocator()
    cache.begin_pool(POOL)
    cache.free(cache.alloc(30 * MIB))
    cache.end_pool(POOL)
    cache.release_pool(POOL)

    cache.empty_cache()

    assert (cache.reserved, cache.private) == (0, {})


def test_a_pool_may_serve_some_streams_only() -> None:
    cache = allocator()
    cache.begin_pool(POOL, streams={4})

    inside, outside = cache.alloc(1, stream=4), cache.alloc(1, stream=0)

    assert (inside.pool.id, outside.pool.id) == (POOL, (0, 0))


def test_nothing_is_given_back_while_a_graph_is_captured() -> None:
    cache = allocator(capacity=100 * MIB)
    cache.free(cache.alloc(60 * MIB))
    cache.begin_pool(POOL, capture=True)

    with pytest.raises(OutOfMemoryError):
        cache.alloc(80 * MIB)
    cache.empty_cache()

    stats = cache.memory_stats()
    assert (cache.reserved, stats["num_alloc_retries"]) == (60 * MIB, 0)


def test_a_pool_without_capture_lets_memory_be_given_back() -> None:
    cache = allocator(capacity=100 * MIB)
    cache.free(cache.alloc(60 * MIB))
    cache.begin_pool(POOL)

    assert cache.alloc(80 * MIB).pool.id == POOL


def test_events_are_put_off_until_the_capture_has_ended() -> None:
    cache = allocator()
    block = cache.alloc(30 * MIB)
    cache.record_stream(block, 5)
    cache.begin_pool(POOL, streams={9}, capture=True)
    cache.free(block)
    cache.alloc(1)
    during = active(cache)
    cache.end_pool(POOL)

    cache.alloc(1)

    assert (during, active(cache)) == (30 * MIB + 512, 1024)


def test_uses_that_were_named_in_a_capture_need_no_event() -> None:
    cache = allocator()
    block = cache.alloc(30 * MIB)
    cache.begin_pool(POOL, streams={9}, capture=True)
    cache.record_stream(block, 5)
    cache.free(block)
    cache.end_pool(POOL)
    cache.busy.add(5)

    cache.alloc(1)

    assert active(cache) == 512


def test_a_pool_can_help_out_when_the_card_is_full() -> None:
    cache = allocator(capacity=100 * MIB)
    cache.create_pool(POOL, use_on_oom=True)
    cache.begin_pool(POOL)
    cache.free(cache.alloc(60 * MIB))
    cache.end_pool(POOL)

    assert cache.alloc(50 * MIB).pool.id == POOL


def test_a_pool_can_hand_its_blocks_out_whole() -> None:
    cache = allocator()
    cache.create_pool(POOL, no_split=True)
    cache.begin_pool(POOL)

    assert cache.alloc(3 * MIB).size == 20 * MIB


def test_a_pool_cannot_be_begun_twice_nor_ended_when_it_is_not() -> None:
    cache = allocator()
    cache.begin_pool(POOL)

    with pytest.raises(ValueError, match="already recording"):
        cache.begin_pool(POOL)
    with pytest.raises(ValueError, match="not currently recording"):
        cache.end_pool((0, 2))
