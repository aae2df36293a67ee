"""A command in a group of its own, kept by a keeper, so that nothing of it outlives the trial.

    with Group(command, folder=..., environment=..., output=fd) as group:
        group.exit_code()   # None while it runs
        group.stop()

Only processes that this command started are ever signalled: the keeper's descendants, and, should
the keeper itself have been killed, those that carry the trial's own mark in their environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.lab import keeper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

MARK = "OOMDOCTOR_TRIAL_MARK"
_START_S = 30.0
_STOP_S = keeper.SOFT_S + keeper.LINGER_S + 5.0
_LOOK_S = 0.02


class Group:
    """Starts a command when it is entered; when it is left, nothing of it runs any more."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        output: int,
    ) -> None:
        """Start nothing yet; what the command prints goes to the descriptor `output`."""
        self.mark = uuid.uuid4().hex
        self.pid: int | None = None
        self.problem: str | None = None  # why the command could not be started
        self.lost = False  # somebody killed the keeper
        self._command = list(command)
        self._folder = folder
        self._environment = {**environment, MARK: self.mark}
        self._output = output
        self._line: socket.socket | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._code: int | None = None

    def __enter__(self) -> Self:
        """Start the keeper, and it the command."""
        self._line, theirs = socket.socketpair()
        try:
            self._keeper = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    keeper.__file__,
                    str(theirs.fileno()),
                    "--",
                    *self._command,
                ],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:  # the folder, mostly
            self.problem = str(error)
        finally:
            theirs.close()
        until = time.monotonic() + _START_S
        while self.pid is None and self.problem is None and not self.lost:
            self.hear(max(0.0, until - time.monotonic()))
            if time.monotonic() > until:
                self.problem = "its keeper did not start"
        return self

    def __exit__(self, *_: object) -> None:
        """End all that is left of it."""
        self.stop()

    def fileno(self) -> int:
        """Return what can be waited for: it is readable when the group has something to tell."""
        return -1 if self._line is None else self._line.fileno()

    @property
    def keeper_pid(self) -> int | None:
        """Return the process below which all others of the command are."""
        return None if self._keeper is None else self._keeper.pid

    @property
    def code(self) -> int | None:
        """Return the exit code, as far as it is known; None too where it was ended by us."""
        return self._code

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the command runs."""
        self.hear(0.0)
        return self._code

    def is_over(self) -> bool:
        """Say whether the command has ended, or could not be started."""
        return self.exit_code() is not None or self.lost or self.problem is not None

    def hear(self, seconds: float) -> None:
        """Take in what the keeper says within some seconds."""
        if self._line is None or self.lost or self._keeper is None:
            return
        self._line.settimeout(seconds)
        try:
            data = self._line.recv(1 << 12)
        except (TimeoutError, BlockingIOError):
            return
        except OSError:
            data = b""
        self.lost = not data and self._code is None and self.problem is None
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.pid = message.get("pid", self.pid)
            self._code = message.get("code", self._code)
            self.problem = message.get("failed", self.problem)

    def processes(self) -> dict[int, int]:
        """Return the live processes of the command with their start times, by their mark."""
        wanted = f"{MARK}={self.mark}".encode()
        own = {os.getpid(), *(() if self._keeper is None else (self._keeper.pid,))}
        found: dict[int, int] = {}
        for pid in set(keeper.pids()) - own:
            with contextlib.suppress(OSError):
                start = keeper.start_time(pid)
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                if start is not None and wanted in environment.split(b"\0"):
                    found[pid] = start
        return found

    def stop(self) -> None:
        """End the command and all that it started."""
        process, self._keeper = self._keeper, None
        if self._line is not None:
            self._line.close()  # the keeper takes that for the lab's end
        if process is None:
            return
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        until = time.monotonic() + _STOP_S
        while (left := self.processes()) and time.monotonic() < until:  # of a killed keeper
            for pid, start in left.items():
                keeper.send(pid, start, signal.SIGKILL)
            time.sleep(_LOOK_S)
