"""What a command prints, in files that a flood does not fill: its beginning and its end are kept.

output.log holds the first 4 MiB; what follows goes into parts of 8 MiB (output.000001.part, ...),
of which only the last ones stay. `finish` joins them, with a line that says how much was left out;
where nobody came to that, `read_output` does.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.recorder.places import OUTPUT_FILE, content_of

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES = 4 << 20
PART_BYTES = 8 << 20
PARTS = 5
"""The part that is written, and four before it: the last 32 MiB at least."""
_LEFT_OUT = b"\n[oomdoctor left out %d bytes here]\n"


class OutputFile:
    """Takes what a command prints; a disk that is full ends the taking, and nothing else."""

    def __init__(
        self, folder: Path, *, head_bytes: int = HEAD_BYTES, part_bytes: int = PART_BYTES
    ) -> None:
        """Make the file."""
        self._folder = folder
        self._part_bytes = part_bytes
        self._number = 0
        self._room = head_bytes
        self._file = -1
        with suppress(OSError):
            self._file = _opened(folder / OUTPUT_FILE)

    def write(self, data: bytes) -> None:
        """Take a piece."""
        try:
            while data and self._file >= 0:
                if self._room == 0:
                    self._next_part()
                count = os.write(self._file, data[: self._room])
                self._room -= count
                data = data[count:]
        except OSError:
            self._close()

    def finish(self) -> None:
        """Join the parts to one file."""
        self._close()
        parts = _parts(self._folder)
        if not parts:
            return
        with suppress(OSError):
            file = os.open(self._folder / OUTPUT_FILE, os.O_WRONLY | os.O_APPEND)
            try:
                for piece in _after_the_head(parts, self._part_bytes):
                    _write_all(file, piece)
            finally:
                os.close(file)
            for _, path in parts:
                path.unlink()

    def _next_part(self) -> None:
        self._close()
        self._number += 1
        self._file = _opened(self._folder / _part_name(self._number))
        self._room = self._part_bytes
        if self._number > PARTS:
            (self._folder / _part_name(self._number - PARTS)).unlink()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_output(folder: Path, *, part_bytes: int = PART_BYTES) -> bytes:
    """Return all that is kept of what a command printed, finished or not."""
    head = content_of(folder / OUTPUT_FILE)
    return b"".join([head, *_after_the_head(_parts(folder), part_bytes)])


def last_output(folder: Path) -> float | None:
    """Return when the command printed last, in seconds of the Unix clock; None: never."""
    latest = None
    for path in (folder / OUTPUT_FILE, *(path for _, path in _parts(folder)[-1:])):
        with suppress(OSError):
            found = path.stat()
            if found.st_size:
                latest = max(latest or 0.0, found.st_mtime)
    return latest


def _after_the_head(parts: list[tuple[int, Path]], part_bytes: int) -> list[bytes]:
    if not parts:
        return []
    left_out = (parts[0][0] - 1) * part_bytes
    pieces = [_LEFT_OUT % left_out] if left_out else []
    return [*pieces, *(content_of(path) for _, path in parts)]


def _parts(folder: Path) -> list[tuple[int, Path]]:
    """Return the parts in their order with their numbers."""
    found = []
    for path in folder.glob("output.*.part"):
        number = path.name.split(".")[1]
        if number.isdecimal():
            found.append((int(number), path))
    return sorted(found)


def _part_name(number: int) -> str:
    return f"output.{number:06d}.part"


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
