"""Snapshots of all eras are read, and what is none is refused with its path."""

from __future__ import annotations

import gzip
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import InputError
from oomdoctor.snapshot.reading import read_snapshot
from oomdoctor.snapshot.settings import settings_in
from oomdoctor.snapshot.shapes import snapshot_of

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
FIRST = {
    "device": 0,
    "address": 4096,
    "total_size": 2 * MIB,
    "stream": 0,
    "segment_type": "small",
    "blocks": [
        {"size": 512, "state": "active_allocated", "history": [{"real_size": 300, "addr": 4096}]},
        {"size": 1024, "state": "active_pending_free"},
        {"size": 2 * MIB - 1536, "state": "inactive"},
    ],
}
EVENT = {"action": "alloc", "addr": 4096, "size": 300, "stream": 0, "frames": []}
OLD = {"segments": [FIRST], "device_traces": [[EVENT]]}
NEW = {
    "segments": [FIRST | {"segment_pool_id": (0, 3), "is_expandable": True}],
    "device_traces": [[EVENT | {"pool_id": (0, 3), "compile_context": "N/A", "time_us": 7}]],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"},
    "external_annotations": [],
}


def write(folder: Path, data: bytes) -> str:
    path = folder / "snapshot.pickle"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(NEW, protocol=4),
        pickle.dumps(NEW, protocol=2),
        gzip.compress(pickle.dumps(NEW, protocol=4), mtime=0),
        json.dumps(NEW).encode(),
        gzip.compress(b"  " + json.dumps(NEW).encode(), mtime=0),
    ],
    ids=["pickle", "protocol 2", "packed", "json", "packed json"],
)
def test_pickles_and_json_are_read_packed_or_not(tmp_path: Path, data: bytes) -> None:
    snapshot = read_snapshot(write(tmp_path, data))

    (device,) = snapshot.devices
    assert device.segments[0].pool == (0, 3)
    assert device.segments[0].expandable
    assert device.events[0].pool == (0, 3)


def test_the_oldest_snapshots_are_read() -> None:
    (device,) = snapshot_of(OLD).devices

    (segment,) = device.segments
    assert [piece.address for piece in segment.pieces] == [4096, 4608, 5632]
    assert segment.pieces[0].requested == 300
    assert (segment.pool, device.events[0].pool) == ((0, 0), None)


def test_segments_alone_are_a_snapshot_without_events() -> None:
    (device,) = snapshot_of([FIRST]).devices

    assert list(device.events) == []


def test_an_oom_has_the_free_memory_for_an_address() -> None:
    event = {"action": "oom", "device_free": 77, "size": 512, "stream": 0}

    (device,) = snapshot_of({"segments": [], "device_traces": [[event]]}).devices

    assert device.events[0].address == 77


def test_cards_without_anything_are_left_out() -> None:
    snapshot = snapshot_of({"segments": [], "device_traces": [[], [EVENT], []]})

    assert [device.number for device in snapshot.devices] == [1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\x80\x04}.", "no `segments`"),
        (b"[1, 2", "neither a pickle nor JSON"),
        (b"{" * 100_000, "neither a pickle nor JSON"),
        (b"\x1f\x8bnot gzip", "gzip file is damaged"),
        (gzip.compress(b"x" * 5000, mtime=0)[:-20], "gzip file is damaged"),
        (b"a text file\n", "no snapshot"),
        (json.dumps({"segments": 3}).encode(), "`segments` is missing or no list"),
        (json.dumps({"segments": [3]}).encode(), "`device` of a segment"),
        (json.dumps({"segments": [], "device_traces": [3]}).encode(), "is no list"),
        (json.dumps({"segments": [], "device_traces": [[3]]}).encode(), "has an event without"),
        (json.dumps({"segments": [], "device_traces": [[{}]]}).encode(), "without 'action'"),
    ],
)
def test_what_is_no_snapshot_is_refused_with_its_path(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = write(tmp_path, data)

    with pytest.raises(InputError) as caught:
        read_snapshot(path)

    assert message in caught.value.message
    assert str(caught.value).startswith(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("addr", -1), ("size", 1 << 70), ("size", "300"), ("stream", None), ("pool_id", [1])],
)
def test_values_that_cannot_be_are_refused(key: str, value: Any) -> None:
    with pytest.raises(InputError):
        snapshot_of({"segments": [], "device_traces": [[EVENT | {key: value}]]})


def test_a_device_that_there_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="device that there cannot be"):
        snapshot_of({"segments": [FIRST | {"device": 1 << 40}], "device_traces": []})


def test_a_small_file_cannot_become_a_huge_one(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b" " * 50_000_000))

    with pytest.raises(InputError, match="larger than"):
        read_snapshot(path, most_bytes=1_000_000)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b" " * 2000)

    with pytest.raises(InputError, match="larger than"):
        read_snapshot(path, most_bytes=1000)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_snapshot("no-such-file.pickle")


@pytest.mark.parametrize(
    ("listed", "name", "value"),
    [
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}, "max_split", 64 * MIB),
        ({"PYTORCH_CUDA_ALLOC_CONF": "of_another_version:1"}, "max_non_split_rounding", 20 * MIB),
        ({"max_split_size": 32 * MIB}, "max_split", 32 * MIB),
        ({"garbage_collection_threshold": 0.5}, "gc_threshold", 0.5),
        ({"roundup_power2_divisions": {"1": 4, "4": 8}}, "divisions", (4, 0, 8) + (0,) * 13),
        ({"expandable_segments": True}, "expandable", True),
        ({}, "expandable", False),
    ],
)
def test_settings_are_those_that_the_snapshot_lists(
    listed: dict[str, Any], name: str, value: object
) -> None:
    assert getattr(settings_in(listed, ()), name) == value


def test_without_settings_the_segments_show_whether_they_expand() -> None:
    devices = snapshot_of({"segments": NEW["segments"], "device_traces": []}).devices

    assert settings_in({}, devices).expandable
