"""What a command prints is kept within bounds: its beginning, its end, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.recorder.output_file import OutputFile, read_output

if TYPE_CHECKING:
    from pathlib import Path

HEAD, PART = 8, 4


def filled(folder: Path, *pieces: bytes) -> OutputFile:
    file = OutputFile(folder, head_bytes=HEAD, part_bytes=PART)
    for piece in pieces:
        file.write(piece)
    return file


def test_what_fits_is_kept_whole(tmp_path: Path) -> None:
    filled(tmp_path, b"1234", b"56").finish()

    assert (tmp_path / "output.log").read_bytes() == b"123456"


def test_of_a_flood_the_middle_is_left_out_with_a_word(tmp_path: Path) -> None:
    data = bytes(range(65, 65 + 40))

    filled(tmp_path, data).finish()

    kept = (tmp_path / "output.log").read_bytes()
    assert kept == data[:8] + b"\n[oomdoctor left out 12 bytes here]\n" + data[20:]
    assert [one.name for one in tmp_path.iterdir()] == ["output.log"]


def test_parts_that_nobody_joined_are_read_as_if_they_were(tmp_path: Path) -> None:
    data = bytes(range(65, 65 + 40))
    filled(tmp_path, data[:11], data[11:])

    unfinished = read_output(tmp_path, part_bytes=PART)
    filled(tmp_path, data).finish()

    assert unfinished == (tmp_path / "output.log").read_bytes()


def test_a_folder_that_is_gone_costs_nothing_but_the_file(tmp_path: Path) -> None:
    file = filled(tmp_path / "gone", b"123")

    file.write(b"456")
    file.finish()

    assert read_output(tmp_path / "gone") == b""
