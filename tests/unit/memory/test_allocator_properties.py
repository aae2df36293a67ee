"""What holds of the allocator model whatever is done with it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.memory.allocator_snapshot import segments

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block

KIB, MIB = 1 << 10, 1 << 20
TEXTS = (
    "",
    "max_split_size_mb:32",
    "expandable_segments:True",
    "expandable_segments:True,roundup_power2_divisions:4",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.8",
    "roundup_power2_divisions:[2:2,>:8],large_segment_size_mb:40",
)
SIZES = st.one_of(st.integers(1, 4 * KIB), st.integers(1, 3 * MIB), st.integers(1, 90 * MIB))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("alloc"), SIZES, st.integers(0, 2)),
        st.tuples(st.just("free"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("use"), st.integers(0, 50), st.integers(0, 2)),
        st.tuples(st.just("empty"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


def run(text: str, steps: list[tuple[str, int, int]]) -> tuple[Allocator, list[Block], Card]:
    card = Card(300 * MIB)
    cache = Allocator(text, driver=card)
    blocks: list[Block] = []
    for what, number, stream in steps:
        if what == "alloc":
            try:
                blocks.append(cache.alloc(number, stream))
            except OutOfMemoryError:
                continue
        elif what == "empty":
            cache.empty_cache()
        elif blocks and what == "free":
            cache.free(blocks.pop(number % len(blocks)))
        elif blocks:
            cache.record_stream(blocks[number % len(blocks)], stream)
    return cache, blocks, card


def pieces(cache: Allocator) -> list[dict[str, Any]]:
    return [block for one in segments(cache) for block in one["blocks"]]


@pytest.mark.parametrize("text", TEXTS)
@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_blocks_tile_their_segments_and_never_overlap(
    text: str, steps: list[tuple[str, int, int]]
) -> None:
    cache, _, _ = run(text, steps)

    end = 0
    for one in segments(cache):
        assert end <= one["address"]
        end = one["address"]
        for block in one["blocks"]:
            assert end == block["address"]
            assert block["size"] % 512 == 0
            end += block["size"]


@pytest.mark.parametrize("text", TEXTS)
@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_figures_are_the_sums_of_the_blocks(text: str, steps: list[tuple[str, int, int]]) -> None:
    cache, blocks, card = run(text, steps)

    stats, layout = cache.memory_stats(), segments(cache)
    assert stats["allocated_bytes.all.current"] == sum(block.size for block in blocks)
    assert stats["active_bytes.all.current"] == sum(one["active_size"] for one in layout)
    assert stats["requested_bytes.all.current"] == sum(one["requested_size"] for one in layout)
    assert stats["reserved_bytes.all.current"] == sum(one["total_size"] for one in layout)
    assert stats["reserved_bytes.all.current"] == cache.reserved == card.used
    if "expandable" not in text:
        split = [
            block["size"]
            for one in layout
            for block in one["blocks"]
            if block["state"] == "inactive" and len(one["blocks"]) > 1
        ]
        assert stats["inactive_split.all.current"] == len(split)
        assert stats["inactive_split_bytes.all.current"] == sum(split)


@pytest.mark.parametrize("text", TEXTS)
@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_no_two_free_blocks_are_neighbours(text: str, steps: list[tuple[str, int, int]]) -> None:
    cache, _, _ = run(text, steps)

    for one in segments(cache):
        states = [block["state"] for block in one["blocks"]]
        assert ("inactive", "inactive") not in itertools.pairwise(states)


@pytest.mark.parametrize("text", TEXTS)
@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_emptying_the_cache_twice_is_emptying_it_once(
    text: str, steps: list[tuple[str, int, int]]
) -> None:
    cache, _, _ = run(text, steps)
    cache.empty_cache()
    once = segments(cache)

    cache.empty_cache()

    assert once == segments(cache)


@pytest.mark.parametrize("text", TEXTS)
@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_with_all_freed_nothing_is_left(text: str, steps: list[tuple[str, int, int]]) -> None:
    cache, blocks, card = run(text, steps)
    for block in blocks:
        cache.free(block)

    cache.empty_cache()

    assert (segments(cache), cache.reserved, card.used) == ([], 0, 0)
    assert cache.memory_stats()["active.all.current"] == 0
    assert cache.live == {}


@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_peaks_are_what_was_ever_seen(steps: list[tuple[str, int, int]]) -> None:
    cache = Allocator(driver=Card(300 * MIB))
    blocks: list[Block] = []
    seen = 0
    for what, number, _ in steps:
        if what == "alloc":
            try:
                blocks.append(cache.alloc(number))
            except OutOfMemoryError:
                continue
        elif blocks:
            cache.free(blocks.pop(number % len(blocks)))
        seen = max(seen, cache.allocated)

    assert seen == cache.memory_stats()["allocated_bytes.all.peak"]
