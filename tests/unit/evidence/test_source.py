"""Inputs of any encoding, size and kind become bounded lines, or an error that says what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tracemalloc
from typing import TYPE_CHECKING, BinaryIO, cast

import pytest

from oomdoctor.errors import InputError
from oomdoctor.evidence.source import Source, read_source, source_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = "first line\nCUDA out of memory. Tried to allocate 2.00 MiB\nlast line\n"
HALVES = (TEXT[:20].encode(), TEXT[20:].encode())
LINES = ((1, "first line"), (2, TEXT.split("\n")[1]), (3, "last line"))


def read_bytes(data: bytes, *, whole_bytes: int = 32 * 1024**2) -> Source:
    return read_source("-", stdin=io.BytesIO(data), whole_bytes=whole_bytes)


class Stream(io.RawIOBase):
    """A stream that makes its bytes as they are read, so that no test holds them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        """Take the pieces that the reads return."""
        self._pieces = pieces

    def read(self, size: int = -1) -> bytes:
        del size
        return next(self._pieces, b"")


def test_a_file_gives_numbered_lines(tmp_path: Path) -> None:
    path = tmp_path / "crash.log"
    path.write_text(TEXT)

    source = read_source(str(path))

    assert source.lines == LINES
    assert source.artifact.id == str(path)
    assert source.artifact.kind == "log"
    assert source.artifact.size_bytes == len(TEXT)
    assert source.notes == ()


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (TEXT.encode(), None),
        (b"\xef\xbb\xbf" + TEXT.encode(), None),
        (TEXT.encode("utf-16"), "utf-16-le"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-32"), "utf-32-le"),
        (TEXT.encode("utf-32-be"), "utf-32-be"),
        (gzip.compress(TEXT.encode(), mtime=0), "gzip"),
        (
            gzip.compress(TEXT[:20].encode(), mtime=0) + gzip.compress(TEXT[20:].encode(), mtime=0),
            "gzip",
        ),
        (bz2.compress(TEXT.encode()), "bz2"),
        (lzma.compress(TEXT.encode()), "xz"),
        (TEXT.replace("line", "li\x00ne").encode(), "NUL"),
    ],
)
def test_encodings_and_compression_are_seen_through(data: bytes, note: str | None) -> None:
    source = read_bytes(data)

    assert source.lines == LINES
    assert (note is None) == (source.notes == ())
    assert all(note in said for said in source.notes[:1] if note)


def test_windows_text_is_read_as_cp1252_with_a_note() -> None:
    source = read_bytes("Größe überschritten\nout of memory\n".encode("cp1252"))

    assert source.lines[0] == (1, "Größe überschritten")
    assert "cp1252" in source.notes[0]


def test_few_broken_bytes_do_not_turn_utf_8_into_something_else() -> None:
    source = read_bytes("100%|██████████| 3/3\n".encode() * 50 + b"half \xe2\x96 character\n")

    assert source.lines[0] == (1, "100%|██████████| 3/3")
    assert "not UTF-8 were replaced" in source.notes[0]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x80\x04\x95\x10" + b"x" * 50, "pickle"),
        (b"PK\x03\x04" + b"x" * 50, "zip"),
        (b"\x7fELF\x02\x01" + b"x" * 50, "ELF"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 50, "picture"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 50, "zstd"),
        (bytes(range(256)) * 100, "binary"),
        (b"\x1f\x8b" + b"no gzip at all", "damaged"),
    ],
)
def test_binary_data_is_refused_with_a_name_and_a_hint(data: bytes, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_bytes(data)

    assert says in caught.value.message
    assert caught.value.hint


def test_a_missing_file_a_directory_and_a_device_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_source(str(tmp_path / "missing.log"))
    with pytest.raises(InputError, match="directory, a file is expected"):
        read_source(str(tmp_path))
    with pytest.raises(InputError, match="device"):
        read_source("/dev/zero")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.log"
    path.write_text(TEXT)
    path.chmod(0)

    with pytest.raises(InputError, match="cannot read"):
        read_source(str(path))


def test_an_empty_input_is_fine_and_noted() -> None:
    source = read_bytes(b"")

    assert source.lines == ()
    assert source.notes == ("<stdin>: the input is empty",)


def test_a_line_of_200_mb_is_cut_and_does_not_fill_the_memory() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"start\n"
        for _ in range(100):
            yield b"x" * 1024**2
        yield b" CUDA out of memory. "
        for _ in range(100):
            yield b"y" * 1024**2
        yield b"\nend"

    tracemalloc.start()
    source = read_source("-", stdin=cast("BinaryIO", Stream(pieces())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    long = [text for number, text in source.lines if number == 2]
    assert source.lines[0] == (1, "start")
    assert source.lines[-1] == (3, "end")
    assert max(map(len, long)) <= 64 * 1024
    assert any("CUDA out of memory. " in text for text in long)
    assert (long[0][0], long[-1][-1]) == ("x", "y")
    assert "line 2" in source.notes[0]
    assert peak < 16 * 1024**2


def test_a_huge_log_keeps_head_failure_and_tail_with_true_line_numbers() -> None:
    filler = "".join(f"step {n} loss 1.0\n" for n in range(1000))
    failure = "torch.OutOfMemoryError: CUDA out of memory.\n"
    data = (filler * 500 + failure + filler * 500 + "the end").encode()

    source = read_bytes(data, whole_bytes=1024**2)

    assert source.lines[0] == (1, "step 0 loss 1.0")
    assert source.lines[-1] == (1_000_002, "the end")
    assert (500_001, failure.strip()) in source.lines
    assert sum(len(text) + 1 for _, text in source.lines) < len(data)
    assert "skipped" in source.notes[-1]


def test_a_log_that_repeats_a_literal_stays_bounded() -> None:
    data = b"retry: allocation failed, out of memory, trying again\n" * 600_000

    source = read_bytes(data, whole_bytes=1024**2)

    assert sum(len(text) + 1 for _, text in source.lines) < len(data)
    assert source.lines[-1][0] == 600_000


def test_a_text_at_hand_becomes_a_source() -> None:
    source = source_of_text(TEXT, name="<pasted>")

    assert source.lines == LINES
    assert source.artifact.id == "<pasted>"
    assert source.text == TEXT


def test_the_last_line_feed_is_kept_so_that_diffs_against_the_file_apply(tmp_path: Path) -> None:
    closed, open_end = tmp_path / "closed.yaml", tmp_path / "open.yaml"
    closed.write_text("a: 1\nb: 2\n", encoding="utf-8")
    open_end.write_text("a: 1\nb: 2", encoding="utf-8")

    assert read_source(str(closed)).text == "a: 1\nb: 2\n"
    assert read_source(str(open_end)).text == "a: 1\nb: 2"
    assert source_of_text("a: 1\n").text == "a: 1\n"


def test_data_that_unpack_without_end_are_read_to_a_limit_that_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("oomdoctor.evidence.source.UNPACKED_LIMIT_BYTES", 1024**2)

    source = read_bytes(gzip.compress(b"all is well\n" * 400_000))

    assert source.artifact.size_bytes is not None
    assert source.artifact.size_bytes < 2 * 1024**2
    assert "it unpacks to more than 1.00 MiB" in source.notes[-1]


def test_a_text_is_bounded_like_a_file() -> None:
    last = "RuntimeError: CUDA out of memory.\n"
    long = source_of_text("CUDA out of memory " * 100_000)
    large = source_of_text("step 1 is fine\n" * 400_000 + last)

    assert max(len(line) for _, line in long.lines) <= 64 * 1024
    assert "over-long lines were cut" in " ".join(long.notes)
    assert large.lines[-1] == (400_001, last.rstrip("\n"))
    assert len(large.lines) < 100_000
