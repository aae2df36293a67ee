r"""The line of a recording: JSON lines in a file of the process's own, in the folder of the run.

    <run>/processes/4711-892311/events.jsonl
    {"t": 1764540001.25, "type": "step", "pid": 4711, "rank": 0, "world": 2, "number": 1}

Each line is one write, so that it survives whatever becomes of the process. The folder is made
with the first message: a process that has nothing to tell leaves none. A program may close every
descriptor and open its own under the same number: before each write the file is looked at.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from typing import TYPE_CHECKING

from ..meters import start_ticks

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "events.jsonl"
_MOST_BYTES = 64 << 20  # of a file; afterwards only what tells of an end is written
_LAST_WORDS = ("oom", "error", "exit", "done")
_MOST_FAILURES = 50
_LEAST_DESCRIPTOR = 200  # out of the way of what the program counts with


class FileLine:
    """Sends messages to the process's file in the folder of a run; has the interface of `Line`.

    `greet` gives what is told first, in a forked child once more.
    """

    def __init__(self, run: str, greet: Callable[[], dict[str, object] | None]) -> None:
        """Open nothing yet."""
        self._run = os.path.abspath(run)
        self._greet = greet
        self._lock = threading.RLock()  # a signal handler of the program may come back here
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        self._folder: str | None = None
        self._bytes = 0
        self._failures = 0
        self._is_torn = False

    def forget(self) -> None:
        """Leave the parent's file to the parent: called in a forked child."""
        self._lock = threading.RLock()
        if self._is_open():
            os.close(self._file or 0)
        self._file = self._identity = self._folder = None
        self._bytes = 0

    def send(self, message: dict[str, object]) -> bool:
        """Write one message; False if it cannot be written."""
        with self._lock:
            if self._failures > _MOST_FAILURES:
                return False
            if self._bytes > _MOST_BYTES and message.get("type") not in _LAST_WORDS:
                return True
            try:
                if self._folder is None:
                    self.folder()
                    self._write(self._greet())
                self._write(message)
            except (OSError, ValueError):
                self._failures += 1
                return False
        return True

    def has_spoken(self) -> bool:
        """Say whether this process has told anything."""
        return self._folder is not None

    def is_closed(self) -> bool:
        """A file has nobody at its other end who could leave."""
        return False

    def folder(self) -> str:
        """Return the folder of this process, and make it."""
        if self._folder is None:
            folder = os.path.join(self._run, "processes", f"{os.getpid()}-{start_ticks() or 0}")
            os.makedirs(folder, exist_ok=True)
            self._folder = folder
        return self._folder

    def close(self) -> None:
        """Close the file; a later message would open it again."""
        with self._lock:
            if self._is_open():
                os.close(self._file or 0)
            self._file = None

    def _write(self, message: dict[str, object] | None) -> None:
        if message is None:
            return
        text = json.dumps(
            {"t": round(time.time(), 3), **message}, separators=(",", ":"), default=str
        )
        data = b"\n" * self._is_torn + text.encode() + b"\n"
        if not self._is_open():
            self._open()
        written = os.write(self._file or 0, data)
        self._bytes += written
        self._is_torn = written < len(data)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        file = _moved_up(os.open(os.path.join(self.folder(), FILE), flags, 0o666))
        found = os.fstat(file)
        self._file, self._identity = file, (found.st_dev, found.st_ino)

    def _is_open(self) -> bool:
        """Say whether the descriptor is still that of our file."""
        if self._file is None:
            return False
        try:
            found = os.fstat(self._file)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity and found.st_nlink > 0


def write_whole(path: str, data: str) -> None:
    """Write a file under another name and give it its own: no reader sees half of it."""
    other = f"{path}.{os.getpid()}.part"
    with open(other, "w", encoding="utf-8", errors="replace") as file:
        file.write(data)
    os.replace(other, path)


def count(value: object, otherwise: int) -> int:
    """Return a setting that is a count, or what stands for it."""
    return value if type(value) is int and value >= 0 else otherwise


def _moved_up(file: int) -> int:
    """Return the descriptor under a high number, if the limits of the process allow one."""
    with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
        import fcntl

        high = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _LEAST_DESCRIPTOR)
        os.close(file)
        return high
    return file
