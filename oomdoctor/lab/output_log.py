"""What a trial prints, in a file that a flood does not fill: its beginning and its end are kept."""

from __future__ import annotations

import fcntl
import os
from collections import deque
from typing import TYPE_CHECKING

from oomdoctor.lab.journal import unwritable

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

HEAD_BYTES = 16 << 20
TAIL_BYTES = 1 << 20
_CHUNK = 1 << 16


class OutputLog:
    """A pipe whose end `writes_to` a command gets; `read` moves what arrived into the file."""

    def __init__(self, path: Path, *, head_bytes: int = HEAD_BYTES) -> None:
        """Open nothing yet."""
        self.path = path
        self.writes_to = -1
        self._reads_from = -1
        self._head_left = head_bytes
        self._later: deque[bytes] = deque()
        self._later_bytes = 0
        self._left_out = 0
        self.is_closed = False

    def __enter__(self) -> Self:
        """Open the pipe and the file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb", buffering=0)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._reads_from, self.writes_to = os.pipe()
        fcntl.fcntl(self._reads_from, fcntl.F_SETFL, os.O_NONBLOCK)
        return self

    def __exit__(self, *_: object) -> None:
        """Take in what is still in the pipe and complete the file."""
        self.given_away()
        try:
            while self.read():
                pass
            if self._left_out:
                self._write(b"\n[oomdoctor left out %d bytes]\n" % self._left_out)
            for one in self._later:
                self._write(one)
        finally:
            self._file.close()
            os.close(self._reads_from)

    def fileno(self) -> int:
        """Return what can be waited for."""
        return self._reads_from

    def given_away(self) -> None:
        """Close our own copy of the writing end: the command has its own by now."""
        if self.writes_to >= 0:
            os.close(self.writes_to)
            self.writes_to = -1

    def read(self) -> bool:
        """Move what is there; False if there was nothing, or nobody writes any more."""
        try:
            data = os.read(self._reads_from, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.is_closed = True
            return False
        head, rest = data[: self._head_left], data[self._head_left :]
        self._head_left -= len(head)
        if head:
            self._write(head)
        if rest:
            self._keep(rest)
        return True

    def _write(self, data: bytes) -> None:
        """Write all of it; InputError where the disk is full, say."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _keep(self, data: bytes) -> None:
        self._later.append(data)
        self._later_bytes += len(data)
        while self._later_bytes - len(self._later[0]) > TAIL_BYTES:
            gone = len(self._later.popleft())
            self._later_bytes -= gone
            self._left_out += gone


def tail_of(path: Path, most: int = 256 << 10) -> str:
    """Return the end of a file as text."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        return file.read().decode("utf-8", "replace")
