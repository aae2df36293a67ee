"""Hears what the watched processes of a trial say, while it waits for other descriptors as well."""

from __future__ import annotations

import contextlib
import json
import selectors
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from typing_extensions import Self

    Message: TypeAlias = dict[str, Any]  # what json.loads returns

    class HasFile(Protocol):
        """What can be waited for."""

        def fileno(self) -> int:
            """Return its descriptor."""


_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 20  # of a process that sends no lines: not one of ours


class Listener:
    """A Unix socket in a folder of its own; `wait` returns the messages that arrived."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self.path = ""
        self._folder = ""
        self._socket: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._partial: dict[socket.socket, bytes] = {}
        self._messages: list[Message] = []

    def __enter__(self) -> Self:
        """Listen."""
        self._folder = tempfile.mkdtemp(prefix="oomd-")  # short: a path has 107 bytes at most
        self.path = str(Path(self._folder) / "s")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen(128)
        self._socket.settimeout(0.0)
        self.also(self._socket, self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        """Close all lines: whoever still speaks learns that nobody listens."""
        for line in list(self._partial):
            self._close(line)
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
        self._selector.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def also(self, source: HasFile | int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever a descriptor can be read."""
        self._selector.register(source, selectors.EVENT_READ, ready)

    def no_more(self, source: HasFile | int) -> None:
        """Wait for a descriptor no longer."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def wait(self, seconds: float) -> list[Message]:
        """Wait for something to arrive, and return the messages that are complete."""
        for key, _ in self._selector.select(seconds):
            key.data()
        found, self._messages = self._messages, []
        return found

    def rest(self) -> list[Message]:
        """Return what is still on its way from processes that have ended."""
        found: list[Message] = []
        while self._selector.select(0):
            found += self.wait(0)
        return found

    def _accept(self) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(OSError):
            line, _ = self._socket.accept()
            line.settimeout(0.0)
            self._partial[line] = b""
            self.also(line, lambda: self._read(line))

    def _read(self, line: socket.socket) -> None:
        try:
            data = line.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or len(self._partial[line]) > _LONGEST_LINE:
            self._close(line)
            return
        *lines, self._partial[line] = (self._partial[line] + data).split(b"\n")
        for one in lines:
            with contextlib.suppress(ValueError):
                message = json.loads(one)
                if isinstance(message, dict):
                    self._messages.append(message)

    def _close(self, line: socket.socket) -> None:
        self._partial.pop(line, None)
        self.no_more(line)
        line.close()
