"""Opens a snapshot: a pickle of `torch.cuda.memory._dump_snapshot`, or JSON, also with gzip."""

from __future__ import annotations

import gc
import gzip
import json
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.snapshot.pickles import load_pickle
from oomdoctor.snapshot.shapes import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from oomdoctor.snapshot.shapes import Snapshot

MOST_BYTES = 1 << 30
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20


def read_snapshot(path: str, *, most_bytes: int = MOST_BYTES) -> Snapshot:
    """Read a snapshot from a file; InputError where it is none, or larger than `most_bytes`."""
    try:
        with open(path, "rb") as file:
            data = _whole(file, most_bytes)
    except OSError as error:
        what = error.strerror or "not readable"
        raise InputError(f"cannot read: {what}", location=Location(path=path)) from error
    try:
        data = _unpacked(data, most_bytes)
        with uncollected():
            return _read(data)
    except InputError as error:
        raise InputError(error.message, location=Location(path=path), hint=error.hint) from error


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
    """Return what gzip packed, in steps, so that a small file cannot become a huge one."""
    if not data.startswith(GZIP):
        return data
    import io

    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while part := file.read(CHUNK):
                parts.append(part)
                size += len(part)
                if size > most_bytes:
                    raise _too_large(most_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the gzip file is damaged: {error}") from error
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


def _too_large(most_bytes: int) -> InputError:
    from oomdoctor.units import format_size

    return InputError(
        f"the snapshot is larger than {format_size(most_bytes, decimals=0)}",
        hint="record fewer events: _record_memory_history(max_entries=100_000)",
    )
