"""Hostile pickles are refused before anything of them is loaded, with a clear error."""

from __future__ import annotations

import os
import pickle
import pickletools
import struct
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.errors import InputError
from oomdoctor.snapshot.pickles import check_pickle, load_pickle

PLAIN = {
    "segments": [{"device": 0, "address": 139_000_000_000_000, "segment_pool_id": (0, 1)}],
    "device_traces": [[{"action": "alloc", "addr": 1 << 46, "size": 300, "frames": []}] * 3],
    "text": "a line\nwith é and 64 KiB: " + "x" * 65536,
    "others": [None, True, False, 1.5, -3, 70_000, ()],
}


class Runs:
    """An object whose pickle runs a command."""

    def __init__(self, command: str) -> None:
        """Keep the command."""
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        """Say that loading is running."""
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_are_read_from_every_protocol(protocol: int) -> None:
    value = {**PLAIN, "segments": []} if protocol < 1 else PLAIN

    assert load_pickle(pickle.dumps(value, protocol=protocol)) == value


def test_optimised_pickles_are_read() -> None:
    assert load_pickle(pickletools.optimize(pickle.dumps(PLAIN, protocol=4))) == PLAIN


@pytest.mark.parametrize("protocol", range(6))
def test_no_command_is_run(protocol: int, tmp_path: Any) -> None:
    mark = tmp_path / "was-run"
    data = pickle.dumps({"segments": [Runs(f"touch {mark}")]}, protocol=protocol)

    with pytest.raises(InputError, match="nothing of it was run"):
        load_pickle(data)
    assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"(S'true'\nios\nsystem\n.",
        b"Pname\n.",
        b"\x80\x02\x82\x01.",
        b"\x80\x04\x8f.",
        b"\x80\x04]\x91.",
        b"\x80\x05\x97.",
        b"]2\x86.",
    ],
)
def test_instructions_that_a_snapshot_does_not_have_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="no snapshot"):
        load_pickle(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04",
        b"\x80\x04}",
        b"\x80\x04\x8c\xffshort",
        b"\x80\x04X\xff\xff\xff\xffshort",
        b"\x80\x04\x8d" + b"\xff" * 8 + b"short",
        pickle.dumps(PLAIN, protocol=4)[:-500],
        b".",
        b"\x80\x04u.",
        b"\x80\x04h\x07.",
        b"\x80\x04(((.",
    ],
)
def test_what_is_cut_off_or_out_of_order_is_damaged(data: bytes) -> None:
    with pytest.raises(InputError, match=r"damaged|cut off"):
        load_pickle(data)


def test_an_integer_of_many_digits_is_refused() -> None:
    for data in (
        b"\x80\x02\x8b" + struct.pack("<i", 1 << 20) + b"\x01" * (1 << 20) + b".",
        b"\x80\x02\x8a\xff" + b"\x01" * 255 + b".",
        b"L" + b"9" * 100_000 + b"L\n.",
        b"I" + b"9" * 30 + b"\n.",
    ):
        with pytest.raises(InputError, match="no snapshot"):
            load_pickle(data)


def test_a_table_for_objects_that_are_not_there_is_not_made() -> None:
    tracemalloc.start()
    try:
        for data in (b"\x80\x02]r\xff\xff\xff\x7f.", b"]p999999999\n."):
            with pytest.raises(InputError, match="numbers objects"):
                load_pickle(data)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_empty_containers_without_end_are_refused() -> None:
    for sign in (b"]", b"}", b"(d", b"(l"):
        with pytest.raises(InputError, match="which hold nothing"):
            load_pickle(b"\x80\x02" + sign * 1_000_000 + b".")


def test_a_key_that_takes_for_ever_to_hash_is_refused() -> None:
    nested = b"\x80\x02)" + b"q\x00h\x00\x86" * 100 + b"K\x01s."
    start = time.monotonic()

    with pytest.raises(InputError, match="no snapshot"):
        load_pickle(nested)
    assert time.monotonic() - start < 5


def test_deep_nesting_is_no_harm() -> None:
    assert isinstance(load_pickle(b"\x80\x02" + b"]" * 9_000 + b"a" * 8_999 + b"."), list)


def test_it_is_checked_without_being_loaded() -> None:
    check_pickle(pickle.dumps(PLAIN, protocol=4))


@given(at=st.integers(0, 2000), value=st.integers(0, 255), cut=st.integers(1, 3000))
@settings(max_examples=300, deadline=None)
def test_a_changed_byte_gives_values_or_a_clear_error(at: int, value: int, cut: int) -> None:
    data = bytearray(pickle.dumps({**PLAIN, "text": "short"}, protocol=4))
    data[at % len(data)] = value

    try:
        load_pickle(bytes(data[:cut]))
        load_pickle(bytes(data))
    except InputError:
        pass


@pytest.mark.parametrize(
    ("before", "behind", "value"),
    [
        (b"K\x01", b"\x85", (1,)),
        (b"K\x01K\x02", b"\x86", (1, 2)),
        (b"K\x01", b"K\x02\x86", (1, 2)),
        (b"K\x01", b"J\xff\xff\xff\x7fM\x00\x01\x87", (1, 0x7FFFFFFF, 256)),
    ],
)
def test_a_frame_may_begin_within_a_tuple(
    before: bytes, behind: bytes, value: tuple[int, ...]
) -> None:
    """A pickler begins a new frame every 64 KiB, wherever that is."""
    rest = behind + b"\x94a."

    data = b"\x80\x04]\x94" + before + b"\x95" + struct.pack("<Q", len(rest)) + rest

    assert load_pickle(data) == [value]
