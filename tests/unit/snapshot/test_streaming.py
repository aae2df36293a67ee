"""The compiled reader of snapshots reads what the one in Python reads, or leaves it alone."""

from __future__ import annotations

import gzip
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import InputError
from oomdoctor.snapshot import compiled, reading, streaming
from oomdoctor.snapshot.pickles import load_pickle
from oomdoctor.snapshot.reading import read_snapshot
from oomdoctor.snapshot.shapes import snapshot_of
from oomdoctor.snapshot.streaming import Ended, read_stream
from oomdoctor.virtual import compiling
from tests.unit.snapshot.planted import GIB, MIB, Recorded, leak, train
from tests.unit.snapshot.runs import dice_of, recorded

if TYPE_CHECKING:
    import ctypes
    import random
    from collections.abc import Iterator
    from pathlib import Path

    from oomdoctor.snapshot.shapes import Snapshot

MOST = 1 << 30
SIGNS = b"}](NueasKMJ\x8ahj\x94qr\x86\x88\x89GX\x8c\x8d\x95.\x80cR"
EVENT = {"action": "alloc", "addr": 4096, "size": 300, "stream": 0, "frames": []}
FRAME = {"name": "forward", "filename": "model.py", "line": 3}
OLDER = {
    "segments": [
        {
            "device": 0,
            "address": 4096,
            "total_size": 2 * MIB,
            "blocks": [
                {"size": 512, "state": "active_allocated", "history": [{"real_size": 300}]},
                {"size": 2 * MIB - 512, "state": "inactive", "history": []},
            ],
        }
    ],
    "device_traces": [[], [EVENT], []],
}
MORE_OF_ALL = {
    "segments": [],
    "device_traces": [
        [
            EVENT | {"frames": [FRAME, dict(FRAME), FRAME], "user_metadata": "step 1"},
            EVENT | {"action": "of the future", "addr": (1 << 64) - 1, "stream": 1 << 47},
            EVENT | {"pool_id": (3, 1), "time_us": 1 << 50, "of_the_future": [{"a": [1]}, 2]},
            {"action": "oom", "device_free": 77, "size": 512},
        ]
    ],
    "allocator_settings": {
        "PYTORCH_CUDA_ALLOC_CONF": 'a "quoted" \\ line\nwith é',
        "garbage_collection_threshold": 0.75,
        "max_split_size": -1,
        "roundup_power2_divisions": {"1": 0, "2": 4},
        "none": None,
        "whole": 2.0,
    },
    "external_annotations": [
        {"stage": "START", "name": "ProfilerStep#1", "device": 0, "time_us": 5}
    ],
    "of_the_future": [{"a": 1}, [1, 2], {}],
    "other_segments": OLDER["segments"],
    "other_annotations": [{"stage": "END", "name": "x", "device": 0, "time_us": 5}],
}


@pytest.fixture(scope="module")
def reader() -> ctypes.CDLL:
    """Return the compiled reader."""
    found = compiled.library()
    if found is None:
        pytest.skip("there is no C compiler")
    return found


def plain_snapshots() -> dict[str, Any]:
    """Return snapshots of many kinds."""
    made: dict[str, Any] = {
        "of an older PyTorch": OLDER,
        "more of all": MORE_OF_ALL,
        "a leak": train(Recorded(), steps=6, extra=leak(8 * MIB)).snapshot(),
        "out of memory": train(Recorded(capacity=3 * GIB), extra=leak(64 * MIB)).snapshot(),
        "pools and streams": recorded(streams=3, pools=True, seed=5),
        "expandable": recorded("expandable_segments:True", kept=200, streams=2, seed=6),
        "nothing": {"segments": []},
    }
    second = train(Recorded(device=1), steps=3).snapshot()
    both = made["a leak"]["device_traces"] + second["device_traces"][1:]
    segments = made["a leak"]["segments"] + second["segments"]
    return made | {"two cards": {"segments": segments, "device_traces": both}}


PLAIN = plain_snapshots()


def pieces(data: bytes, size: int = 1 << 20) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def told(snapshot: Snapshot) -> object:
    """Return all that a snapshot says, without numbers of stacks, which readers choose."""
    stacks = snapshot.stacks
    devices = [
        (
            one.number,
            [
                (segment[:6], [(piece[:4], stacks[piece.stack]) for piece in segment.pieces])
                for segment in one.segments
            ],
            list(one.events),
            [stacks[number] for number in one.stacks],
            list(one.times_us),
            tuple(one.notes),
        )
        for one in snapshot.devices
    ]
    return devices, repr(snapshot.settings), snapshot.annotations


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", PLAIN)
def test_both_readers_read_the_same(reader: ctypes.CDLL, name: str, protocol: int) -> None:
    data = pickle.dumps(PLAIN[name], protocol=protocol)

    found = read_stream(reader, pieces(data), MOST)

    assert not isinstance(found, Ended)
    assert told(snapshot_of(load_pickle(data))) == told(found)


@pytest.mark.parametrize("size", [1, 2, 13, 1000])
def test_the_pieces_may_end_anywhere(reader: ctypes.CDLL, size: int) -> None:
    data = pickle.dumps(MORE_OF_ALL, protocol=4)

    found = read_stream(reader, pieces(data, size), MOST)

    assert not isinstance(found, Ended)
    assert told(snapshot_of(MORE_OF_ALL)) == told(found)


def mutated(dice: random.Random, data: bytes) -> bytes:
    """Return a pickle with some bytes changed, taken out, put in or doubled."""
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 5))):
        at, share = dice.randrange(len(made)), dice.random()
        if share < 0.5:
            made[at] = dice.choice(SIGNS) if share < 0.3 else dice.randrange(256)
        elif share < 0.6:
            del made[at : at + dice.randrange(1, 20)]
        elif share < 0.8:
            made[at:at] = bytes(dice.choice(SIGNS) for _ in range(dice.randrange(1, 6)))
        else:
            start = dice.randrange(len(made))
            made[at:at] = made[start : start + dice.randrange(1, 200)]
    return bytes(made)


@pytest.mark.parametrize("name", ["of an older PyTorch", "more of all", "pools and streams"])
def test_what_is_read_of_a_changed_pickle_is_what_it_says(reader: ctypes.CDLL, name: str) -> None:
    dice = dice_of(name)
    data, compared = pickle.dumps(PLAIN[name], protocol=4), 0
    for _ in range(400):
        changed = mutated(dice, data)
        try:
            found = read_stream(reader, pieces(changed), MOST)
            whole = snapshot_of(load_pickle(changed), len(changed))
        except InputError:
            continue
        if not isinstance(found, Ended):
            compared += 1
            assert told(whole) == told(found)
    assert compared > 0


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_file_is_read_by_the_compiled_reader(
    reader: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, packed: bool
) -> None:
    assert reader is not None
    data = pickle.dumps(PLAIN["a leak"], protocol=4)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(gzip.compress(data) if packed else data)
    monkeypatch.setattr(reading, "load_pickle", None)

    found = read_snapshot(str(path), streamed_from=0)

    assert told(snapshot_of(PLAIN["a leak"])) == told(found)


def test_without_a_compiler_a_large_file_is_read_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(PLAIN["a leak"], protocol=4))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(streaming, "read_stream", None)

    found = read_snapshot(str(path), streamed_from=0)

    assert told(snapshot_of(PLAIN["a leak"])) == told(found)


def test_what_is_shared_as_pytorch_never_does_is_read_in_python(
    reader: ctypes.CDLL, tmp_path: Path
) -> None:
    data = pickle.dumps({"segments": [], "device_traces": [[EVENT] * 3]}, protocol=4)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(data)

    assert isinstance(read_stream(reader, pieces(data), MOST), Ended)
    assert len(read_snapshot(str(path), streamed_from=0).devices[0].events) == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x04]R.", "instruction REDUCE at byte 3; nothing of it was run"),
        (b"\x80\x04\x8f.", "something that PyTorch does not write at byte 2"),
        (pickle.dumps(OLDER, protocol=4)[:-9], "the file was cut off"),
        (gzip.compress(b"\x80\x04" + b"N" * 100_000, mtime=0), "larger than 49 KiB"),
    ],
    ids=["a call", "a set", "cut off", "packed"],
)
def test_a_large_file_that_is_none_is_not_read_again(
    reader: ctypes.CDLL,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: bytes,
    message: str,
) -> None:
    assert reader is not None
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(data)
    monkeypatch.setattr(reading, "AGAIN_BYTES", 3)

    with pytest.raises(InputError, match=message):
        read_snapshot(str(path), streamed_from=0, most_streamed_bytes=50_000)


def test_the_sources_compile_without_a_warning(reader: ctypes.CDLL, tmp_path: Path) -> None:
    assert reader is not None
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror"]

    compiling.link(
        compiling.find_compiler(), compiled.sources(), tmp_path / compiled.LIBRARY, strict
    )

    assert (tmp_path / compiled.LIBRARY).is_file()
