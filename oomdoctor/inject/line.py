r"""The message line of a process: JSON lines over a Unix socket, one connection per process.

    {"type": "step", "pid": 4711, "rank": 0, "world": 2, "number": 1, "seconds": 0.8}

A forked child takes up a connection of its own with its first message. A line that cannot be sent
is dropped: the program goes on.
"""

from __future__ import annotations

import json
import select
import socket
import threading

_SEND_SECONDS = 5.0


class Line:
    """Sends messages to the lab at a socket's path; knows whether the lab still listens."""

    def __init__(self, path: str) -> None:
        """Connect to nothing yet."""
        self._path = path
        self._socket: socket.socket | None = None
        self._broken = False
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Leave the parent's connection to the parent: called in a forked child."""
        self._lock = threading.Lock()
        held, self._socket = self._socket, None
        if held is not None:
            held.close()

    def send(self, message: dict[str, object]) -> bool:
        """Send one message; False if nobody takes it."""
        data = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        with self._lock:
            if self._broken:
                return False
            try:
                if self._socket is None:
                    self._socket = self._connected()
                self._socket.sendall(data)
            except OSError:
                self._broken = True
                return False
        return True

    def is_closed(self) -> bool:
        """Say whether the lab has closed the line, or died: it never writes to it."""
        line = self._socket
        if line is None:
            return False
        try:
            return bool(select.select([line], [], [], 0)[0]) and not line.recv(1)
        except ConnectionError:  # it left before it had read all
            return True
        except (OSError, ValueError):
            return False

    def _connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(_SEND_SECONDS)
        try:
            line.connect(self._path)
        except OSError:
            line.close()
            raise
        return line
