"""What a trial prints is kept, but not all of a flood."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.lab.output_log import TAIL_BYTES, OutputLog, tail_of

if TYPE_CHECKING:
    from pathlib import Path


def printed(path: Path, data: bytes, head_bytes: int) -> bytes:
    with OutputLog(path, head_bytes=head_bytes) as log:
        for at in range(0, len(data), 4096):
            os.write(log.writes_to, data[at : at + 4096])
            log.read()
    return path.read_bytes()


def test_what_is_printed_is_in_the_file(tmp_path: Path) -> None:
    assert printed(tmp_path / "a" / "log", b"hello\n" * 5000, 1 << 20) == b"hello\n" * 5000


def test_of_a_flood_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    data = b"".join(b"%07d\n" % number for number in range(400_000))

    kept = printed(tmp_path / "log", data, 8000)

    assert kept.startswith(data[:8000])
    assert kept.endswith(data[-TAIL_BYTES:])
    assert len(kept) < 8000 + TAIL_BYTES + (1 << 17)
    assert b"oomdoctor left out" in kept


def test_what_is_left_out_and_what_is_kept_are_all_that_was_printed(tmp_path: Path) -> None:
    data = b"x" * (3 * TAIL_BYTES)

    kept = printed(tmp_path / "log", data, 1000)

    said = int(kept.partition(b"left out ")[2].partition(b" ")[0])
    assert said + kept.count(b"x") == len(data)


def test_the_tail_is_the_end_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * 100 + b"\xffend")

    assert tail_of(path, 4) == "\ufffdend"


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    full = tmp_path / "output.log"
    full.symlink_to("/dev/full")

    with pytest.raises(InputError, match="cannot write: No space left on device"):
        printed(full, b"step 1\n", 1 << 20)
