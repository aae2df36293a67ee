"""Snapshots replay through the allocator model with every address and segment event equal."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.snapshot.reading import read_snapshot
from oomdoctor.snapshot.replay import verify
from oomdoctor.snapshot.shapes import snapshot_of

SHARED = Path(__file__).resolve().parents[4] / "shared" / "snapshots"
FOREIGN = sorted(SHARED.glob("*.pickle")) if SHARED.is_dir() else []
MIB = 1 << 20

spec = importlib.util.spec_from_file_location("runs", Path(__file__).with_name("runs.py"))
assert spec is not None
assert spec.loader is not None
runs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runs)


def counts(plain: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int], int]:
    replay = verify(snapshot_of(plain))
    return (
        (replay.allocations, replay.same_address),
        (replay.segment_events, replay.same_segment_events),
        replay.faults,
    )


def expected(plain: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int], int]:
    actions = [event["action"] for trace in plain["device_traces"] for event in trace]
    allocations = actions.count("alloc")
    segments = sum(action.startswith("segment_") for action in actions)
    return (allocations, allocations), (segments, segments), 0


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_real_snapshots_replay_equally(path: Path) -> None:
    replay = verify(read_snapshot(str(path)))

    assert replay.equal
    assert (replay.faults, replay.first_difference) == (0, None)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "settings",
    [
        "",
        "max_split_size_mb:40",
        "expandable_segments:True",
        "roundup_power2_divisions:4",
        "expandable_segments:True,roundup_power2_divisions:[4:2,>:8]",
    ],
)
def test_a_run_that_was_recorded_whole_replays_equally(settings: str, seed: int) -> None:
    plain = runs.recorded(settings, seed=seed, streams=2)

    assert expected(plain) == counts(plain)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("settings", ["", "roundup_power2_divisions:4"])
def test_a_run_that_is_recorded_from_its_middle_replays_equally(settings: str, seed: int) -> None:
    plain = runs.recorded(settings, steps=900, kept=700, seed=seed)

    assert expected(plain) == counts(plain)


@pytest.mark.parametrize("seed", range(3))
def test_private_pools_are_kept_apart(seed: int) -> None:
    plain = runs.recorded(seed=seed, pools=True)

    assert expected(plain) == counts(plain)


def test_traces_without_pool_ids_find_the_pool_by_the_segments() -> None:
    plain = runs.recorded(seed=2, pools=True, drops=False, steps=120)
    for event in plain["device_traces"][0]:
        del event["pool_id"]

    replay = verify(snapshot_of(plain))

    assert replay.allocations == replay.same_address


def test_another_choice_of_address_is_seen() -> None:
    plain = runs.recorded(steps=60)
    trace = plain["device_traces"][0]
    moved = next(event for event in reversed(trace) if event["action"] == "alloc")
    for event in trace:
        if event.get("addr") == moved["addr"] and event is not moved:
            event["addr"] += 0
    moved["addr"] += 512

    replay = verify(snapshot_of(plain))

    assert not replay.equal
    assert replay.first_difference is not None
    assert moved["addr"] == replay.first_difference.recorded


def test_a_segment_that_the_model_would_not_ask_for_is_seen() -> None:
    plain = runs.recorded(steps=40)
    trace = plain["device_traces"][0]
    at = next(n for n, event in enumerate(trace) if event["action"] == "segment_alloc")
    trace[at] = trace[at] | {"size": trace[at]["size"] + 2 * MIB}

    replay = verify(snapshot_of(plain))

    assert replay.same_segment_events < replay.segment_events


def _block(address: int, size: int, requested: int, state: str) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": requested, "state": state}


def _event(action: str, address: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0}


def _segment(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "device": 0,
        "address": blocks[0]["address"],
        "total_size": sum(block["size"] for block in blocks),
        "stream": 0,
        "segment_type": "large",
        "blocks": blocks,
    }


def test_what_an_unsplit_block_kept_is_found_by_the_replay() -> None:
    # before the trace: 5 MiB held in 5.5 MiB at 0, free 4.5 MiB, another segment with 4 MiB free
    half = MIB // 2
    first = _segment([_block(0, 10 * MIB, 0, "inactive")])
    second = _segment(
        [
            _block(100 * MIB, 16 * MIB, 16 * MIB, "active_allocated"),
            _block(116 * MIB, 5 * MIB - half // 2, 5 * MIB - half // 2, "active_allocated"),
        ]
    )
    second["blocks"][1]["size"] = 5 * MIB
    second["total_size"] = 21 * MIB
    trace = [
        # 4.75 MiB do not fit behind the first block, though 5 MiB seem to be free there
        _event("alloc", 116 * MIB, 5 * MIB - half // 2),
        _event("free_requested", 0, 5 * MIB),
        _event("free_completed", 0, 5 * MIB),
    ]

    replay = verify(snapshot_of({"segments": [first, second], "device_traces": [trace]}))

    assert (replay.allocations, replay.same_address, replay.corrections) == (1, 1, 1)


def test_devices_are_replayed_apart() -> None:
    one, other = runs.recorded(seed=5), runs.recorded(seed=6)
    for segment in other["segments"]:
        segment["device"] = 1
    plain = {
        "segments": one["segments"] + other["segments"],
        "device_traces": one["device_traces"] + other["device_traces"],
    }

    assert expected(plain) == counts(plain)
