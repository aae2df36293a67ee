"""A request that failed although enough was free is proven to be one, with what keeps it apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.snapshot.report import DeviceReport, report_on
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.snapshot.planted import (
    LEAK,
    MIB,
    SCRIPT,
    SETUP,
    Recorded,
    layer,
    leak,
    train,
)

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.snapshot.fragmentation import Fragmentation

POOL = (0, 7)


def judged(device: DeviceReport) -> Fragmentation:
    assert device.fragmentation is not None
    return device.fragmentation


def reported(run: Recorded) -> DeviceReport:
    (device,) = report_on(snapshot_of(run.snapshot())).devices
    return device


def pinned(run: Recorded, *, segments: int = 10, request: int = 18 * MIB) -> Recorded:
    """Fill segments of 20 MiB, free three quarters of each, and ask for more than a hole."""
    blocks: list[Block] = []
    for _ in range(segments):
        blocks += [run.alloc(5 * MIB, layer()) for _ in range(3)]
        run.alloc(5 * MIB, LEAK)
    run.free(*blocks)
    with pytest.raises(OutOfMemoryError):
        run.alloc(request, SETUP)
    return run


def test_holes_that_are_too_small_are_proven() -> None:
    found = judged(reported(pinned(Recorded(capacity=200 * MIB))))

    assert found.proven
    assert found.exact
    assert (found.request_bytes, found.card_free_bytes) == (18 * MIB, 0)
    assert (found.holes, found.largest_hole_bytes) == (10, 15 * MIB)
    assert (found.split_bytes, found.whole_bytes) == (150 * MIB, 0)
    assert (found.reserved_bytes, found.allocated_bytes) == (200 * MIB, 50 * MIB)


def test_the_block_that_pins_a_segment_is_named() -> None:
    device = reported(pinned(Recorded(capacity=200 * MIB)))

    pin = judged(device).pins[0]
    assert (pin.segment_bytes, pin.free_bytes, pin.blocks) == (20 * MIB, 15 * MIB, 1)
    assert pin.life is not None
    share = next(one for one in device.peak.sites if one.stack == pin.life.stack)
    assert share.site.frame == (SCRIPT, 22, "main")


def test_a_full_card_is_no_fragmentation() -> None:
    run = Recorded(capacity=200 * MIB)
    for _ in range(40):
        run.alloc(5 * MIB, LEAK)
    with pytest.raises(OutOfMemoryError):
        run.alloc(5 * MIB, LEAK)

    found = judged(reported(run))

    assert not found.proven
    assert found.free_bytes < 5 * MIB


def test_without_a_failed_request_nothing_is_proven() -> None:
    device = reported(train(Recorded(), steps=3))

    assert device.failed_bytes is None
    assert device.failure is None
    assert device.capacity_bytes is None
    assert not judged(device).proven


def test_what_the_settings_would_have_given_is_replayed() -> None:
    run = Recorded(capacity=220 * MIB)
    run.free(run.alloc(100 * MIB, layer()), run.alloc(100 * MIB, layer()))
    for _ in range(2):
        run.alloc(90 * MIB, layer())
        run.alloc(5 * MIB, LEAK)
    with pytest.raises(OutOfMemoryError):
        run.alloc(25 * MIB, SETUP)

    recorded, expandable, *_ = reported(run).outcomes

    assert recorded.failure is not None
    assert recorded.failure.requested_bytes == 25 * MIB
    assert (recorded.capacity_bytes, recorded.retries) == (220 * MIB, 1)
    assert expandable.settings == "expandable_segments:True"
    assert expandable.failure is None


def test_expandable_segments_do_not_help_where_every_page_is_pinned() -> None:
    run, expandable, *_ = reported(pinned(Recorded(capacity=200 * MIB))).outcomes

    assert run.failure is not None
    assert run.failure == expandable.failure


def test_collecting_garbage_is_told_to_need_a_fraction() -> None:
    outcomes = reported(pinned(Recorded(capacity=200 * MIB))).outcomes

    assert [one.fraction_set for one in outcomes] == [False, False, False, False, True]


@pytest.mark.parametrize("settings", ["", "expandable_segments:True", "max_split_size_mb:32"])
def test_the_settings_of_the_run_fail_where_the_run_did(settings: str) -> None:
    run = train(Recorded(settings, capacity=4000 * MIB), steps=400, extra=leak(37 * MIB))

    device = reported(run)

    assert device.failure is not None
    assert device.outcomes[0].failure is not None
    assert device.outcomes[0].failure.event == device.failure.moment
    assert device.replay is not None
    assert device.outcomes[0].peak_reserved_bytes == device.replay.peak_reserved


def test_blocks_that_wait_for_a_stream_are_added_up() -> None:
    run = Recorded(capacity=200 * MIB)
    run.cache.busy.add(1)
    for _ in range(3):
        block = run.alloc(40 * MIB, LEAK)
        run.cache.record_stream(block, 1)
        run.free(block)
    run.alloc(16 * MIB, SETUP)

    device = reported(run)

    (waiting,) = device.peak.waiting_sites
    assert (device.peak.waiting.held_bytes, device.peak.waiting.blocks) == (120 * MIB, 3)
    assert waiting.site.frame == (SCRIPT, 22, "main")
    assert judged(device).waiting_bytes == 120 * MIB


def test_private_pools_are_added_up() -> None:
    run = Recorded()
    run.alloc(30 * MIB, SETUP)
    run.cache.begin_pool(POOL)
    run.alloc(50 * MIB, LEAK)
    run.cache.end_pool(POOL)

    ((pool, share),) = reported(run).peak.pools

    assert pool == POOL
    assert (share.held_bytes, share.blocks) == (50 * MIB, 1)


def test_the_balance_tells_weights_states_and_passes_apart() -> None:
    device = reported(train(Recorded(), steps=6))

    found = {name: share.held_bytes for name, share in device.peak.categories}

    assert device.peak.held_bytes == sum(found.values())
    assert found["optimizer"] >= 8 * 128 * MIB
    assert found["backward pass"] == 8 * 64 * MIB


def test_what_was_there_before_the_recording_is_told_as_such() -> None:
    plain = train(Recorded(kept=600)).snapshot()
    for segment in plain["segments"]:
        for block in segment["blocks"]:
            block["frames"] = []

    (device,) = report_on(snapshot_of(plain)).devices

    assert dict(device.peak.categories)["before the recording"].held_bytes >= 8 * 192 * MIB
    assert device.before_bytes >= 8 * 192 * MIB
