"""Starts the command that somebody wants to be called when memory runs out, without any shell.

What the alert says goes to its standard input as JSON, and its kind into a variable; nothing of it
becomes a part of the command.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND = "OOMDOCTOR_ALERT"
MOST_SECONDS = 30.0


class Alerts:
    """The commands that were started, until they end."""

    def __init__(self) -> None:
        """Have started none."""
        self._started: list[subprocess.Popen[bytes]] = []

    def call(self, command: Sequence[str], *, kind: str, text: str) -> str | None:
        """Start a command; return why it could not be, if so."""
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, KIND: kind},
                start_new_session=True,
            )
        except OSError as error:
            return error.strerror or str(error)
        self._started.append(process)
        if process.stdin is not None:
            with suppress(OSError):  # it reads nothing, or has ended
                process.stdin.write(text.encode() + b"\n")
                process.stdin.close()
        return None

    def finish(self) -> None:
        """Wait for those that still run; end those that take too long."""
        for process in self._started:
            _finish(process)


def _finish(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
