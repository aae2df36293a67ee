"""Streams replayed through the allocator model: peaks of phases, full cards, settings."""

from __future__ import annotations

import pytest

from oomdoctor.memory.stream_replay import replay
from tests.unit.memory.streams import MIB, Script, training


def test_peaks_are_counted_in_blocks_and_segments() -> None:
    run = Script()
    run.phase("load")
    run.make(1000)
    run.make(3 * MIB)
    played = replay(run.stream())
    assert (played.peak_allocated, played.peak_reserved) == (1024 + 3 * MIB, 22 * MIB)


def test_each_phase_has_its_own_peak() -> None:
    run = Script()
    run.phase("load")
    big = run.make(30 * MIB)
    run.free(big)
    run.phase("step 1")
    run.make(20 * MIB)
    phases = {one.name: one for one in replay(run.stream()).phases}
    assert phases["load"].allocated_bytes == 30 * MIB
    assert phases["step 1"].allocated_bytes == 20 * MIB
    assert phases["step 1"].reserved_bytes == 30 * MIB  # the block of 30 MiB is used again


def test_what_a_phase_begins_with_counts_as_its_peak() -> None:
    run = Script()
    run.phase("load")
    held = run.make(30 * MIB)
    run.phase("save")
    run.free(held)
    phases = {one.name: one.allocated_bytes for one in replay(run.stream()).phases}
    assert phases["save"] == 30 * MIB


def test_an_emptied_cache_is_given_back_before_the_next_phase() -> None:
    run = Script()
    run.phase("load")
    run.free(run.make(30 * MIB))
    run.mark("empty-cache")
    run.phase("step 1")
    run.make(20 * MIB)
    phases = {one.name: one.reserved_bytes for one in replay(run.stream()).phases}
    assert phases == {"load": 30 * MIB, "step 1": 20 * MIB}


def test_a_full_card_names_the_request_that_failed() -> None:
    run = Script()
    run.phase("step 1")
    run.part("forward")
    run.make(60 * MIB)
    run.make(50 * MIB, "aten.mm.default", "model.layers.1.mlp")
    played = replay(run.stream(), capacity_bytes=100 * MIB)
    assert played.failed is not None
    assert played.failed.allocation.module == "model.layers.1.mlp"
    assert (played.failed.event, played.failed.number) == (1, 1)
    assert played.oom is not None
    assert (played.oom.segment, played.oom.free) == (50 * MIB, 40 * MIB)


def test_a_card_that_is_just_large_enough_is_not_full() -> None:
    played = replay(training(), capacity_bytes=10 << 30)
    limit = played.peak_reserved
    assert replay(training(), capacity_bytes=limit).failed is None
    assert replay(training(), capacity_bytes=replay(training()).peak_allocated - MIB).failed


def test_what_others_hold_is_not_to_be_had() -> None:
    run = Script()
    run.make(60 * MIB)
    assert replay(run.stream(), capacity_bytes=100 * MIB, outside_bytes=30 * MIB).oom is None
    assert replay(run.stream(), capacity_bytes=100 * MIB, outside_bytes=50 * MIB).oom is not None


def test_the_cache_is_given_back_before_a_request_fails() -> None:
    run = Script()
    run.free(run.make(60 * MIB))
    run.make(70 * MIB)
    played = replay(run.stream(), capacity_bytes=100 * MIB)
    assert (played.failed, played.retries) == (None, 1)


def test_settings_change_what_is_reserved() -> None:
    run = Script()
    sizes = [run.make(size * MIB) for size in (11, 13, 17)]
    run.free(*sizes)
    run.make(41 * MIB)
    plain = replay(run.stream()).peak_reserved
    expandable = replay(run.stream(), settings="expandable_segments:True").peak_reserved
    assert (plain, expandable) == (86 * MIB, 60 * MIB)


def test_a_block_that_another_stream_uses_waits_for_it() -> None:
    run = Script()
    first = run.make(12 * MIB)
    run.mark("use", "7", first)
    run.free(first)
    run.make(12 * MIB)
    assert replay(run.stream()).peak_allocated == 12 * MIB


def test_streams_do_not_share_blocks() -> None:
    run = Script()
    run.free(run.make(12 * MIB))
    run.make(12 * MIB, cuda_stream=3)
    assert replay(run.stream()).peak_reserved == 24 * MIB


def test_an_empty_stream_needs_nothing() -> None:
    played = replay(Script().stream())
    assert (played.peak_allocated, played.peak_reserved, played.phases) == (0, 0, ())


def test_what_is_freed_twice_is_refused() -> None:
    run = Script()
    first = run.make(10)
    run.free(first, first)
    with pytest.raises(ValueError, match="freed twice"):
        replay(run.stream())
