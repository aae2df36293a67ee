"""Opens a snapshot: a pickle of `torch.cuda.memory._dump_snapshot`, or JSON, also with gzip.

A large pickle goes through the compiled reader, piece by piece. What is small, JSON, or not what
that reader knows, is read in Python, whole.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location, SizeError
from oomdoctor.snapshot.pickles import NAMES, load_pickle
from oomdoctor.snapshot.shapes import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from oomdoctor.snapshot.shapes import Snapshot
    from oomdoctor.snapshot.streaming import Ended

MOST_BYTES = 1 << 30  # of what is read whole
MOST_STREAMED_BYTES = 1 << 35
STREAMED_FROM = 1 << 20  # what is smaller is read before a compiler would have begun
AGAIN_BYTES = 64 << 20  # what is larger is not read again in Python after the compiled reader
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20


def read_snapshot(
    path: str,
    *,
    most_bytes: int = MOST_BYTES,
    most_streamed_bytes: int = MOST_STREAMED_BYTES,
    streamed_from: int = STREAMED_FROM,
) -> Snapshot:
    """Read a snapshot from a file; InputError where it is none, or too large.

    `most_bytes` may be read whole, and `most_streamed_bytes` piece by piece, which is done where
    the file has `streamed_from` bytes or more and there is a compiler.
    """
    try:
        with open(path, "rb") as file, uncollected():
            ended = None
            if os.fstat(file.fileno()).st_size >= streamed_from:
                found = _streamed(file, most_streamed_bytes)
                if found is not None and not isinstance(found, tuple):
                    return found
                ended = found
                file.seek(0)
            return _read(_contents(file, most_bytes, ended))
    except OSError as error:
        what = error.strerror or "not readable"
        raise InputError(f"cannot read: {what}", location=Location(path=path)) from error
    except InputError as error:
        raise InputError(error.message, location=Location(path=path), hint=error.hint) from error


def _streamed(file: BinaryIO, most_bytes: int) -> Snapshot | Ended | None:
    """Read a pickle piece by piece; None where there is no compiler, or this is no pickle."""
    from oomdoctor.snapshot.compiled import library
    from oomdoctor.snapshot.streaming import read_stream

    start = file.read(64)
    file.seek(0)
    packed = start.startswith(GZIP)
    if not packed and not start.startswith(b"\x80"):
        return None
    reader = library()
    if reader is None:
        return None
    return read_stream(reader, _unzipped(file) if packed else _pieces(file), most_bytes)


def _contents(file: BinaryIO, most_bytes: int, ended: Ended | None) -> bytes:
    """Return all of a file; after the compiled reader `ended` at it, only where it is small."""
    most = most_bytes if ended is None else min(most_bytes, AGAIN_BYTES)
    try:
        return _unpacked(_whole(file, most), most)
    except SizeError as error:
        raise (error if ended is None else _ended(file, ended)) from error


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _unzipped(file: BinaryIO) -> Iterator[bytes]:
    """Go through what gzip packed, in steps, so that a small file cannot become a huge one."""
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            while part := packed.read(CHUNK):
                yield part
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the gzip file is damaged: {error}") from error


def _ended(file: BinaryIO, ended: Ended) -> InputError:
    """Say why the compiled reader stopped."""
    from oomdoctor.snapshot import streaming

    state, place = ended
    if state == streaming.TOO_LARGE:
        return _too_large(place)
    if state == streaming.NO_MEMORY:
        return InputError("there is too little memory for this snapshot")
    if state == streaming.CUT_OFF:
        return InputError(
            f"the pickle ends before its end, behind byte {place:,}: the file was cut off"
        )
    what = "something that PyTorch does not write"
    if state == streaming.FORBIDDEN:
        file.seek(place)
        name = NAMES.get(int.from_bytes(file.read(1), "little"))
        what = f"instruction {name}" if name else "an instruction that could run something"
    return InputError(
        f"the pickle is no snapshot: {what} at byte {place:,}; nothing of it was run",
        hint="a snapshot is what torch.cuda.memory._dump_snapshot writes",
    )


def _read(data: bytes) -> Snapshot:
    return snapshot_of(_plain(data), len(data), consume=True)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for cycles, which plain values do not have, again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _whole(file: BinaryIO, most_bytes: int) -> bytes:
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise _too_large(most_bytes)
    return data


def _unpacked(data: bytes, most_bytes: int) -> bytes:
    """Return what gzip packed, as far as it is not too large."""
    if not data.startswith(GZIP):
        return data
    import io

    parts, size = [], 0
    for part in _unzipped(io.BytesIO(data)):
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise _too_large(most_bytes)
    return b"".join(parts)


def _plain(data: bytes) -> object:
    """Return the plain values of a pickle or of JSON."""
    if not data:
        raise InputError("the file is empty")
    start = data[:64].lstrip()
    if not start.startswith((b"{", b"[")) and not data.startswith(b"\xef\xbb\xbf"):
        return load_pickle(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is neither a pickle nor JSON: {error}") from error


def _too_large(most_bytes: int) -> SizeError:
    from oomdoctor.units import format_size

    return SizeError(
        f"the snapshot is larger than {format_size(most_bytes, decimals=0)}",
        hint="install a C compiler (cc), or record fewer events:"
        " _record_memory_history(max_entries=100_000)",
    )
