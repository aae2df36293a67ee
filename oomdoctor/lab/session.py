"""A worker in a process of its own, from its start to its end.

The worker is started with a private socket, so that what a library prints never mixes with the
messages; its own output goes to a file whose last lines explain a crash. It gets a process group of
its own, and only that group is ever signalled. One worker answers many requests: the seconds that
its imports need are paid once.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, OomdoctorError
from oomdoctor.lab.endings import HINTS, signal_name
from oomdoctor.lab.protocol import (
    Failure,
    Hello,
    Progress,
    ProtocolError,
    TraceResult,
    from_line,
    to_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

    from typing_extensions import Self

    from oomdoctor.lab.protocol import RecordRequest, TraceRequest
    from oomdoctor.memory.stream import Stream

REQUEST_SECONDS = 600.0
START_SECONDS = 120.0
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.1
_TOLD_LINES = 12
_TOLD_BYTES = 16 << 10
_CHUNK = 1 << 16
# nothing is fetched; the real cards of this machine are left alone
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "DS_ACCELERATOR": "cuda",  # DeepSpeed asks once, whoever imports it first
    "TRANSFORMERS_VERBOSITY": "error",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONUNBUFFERED": "1",
}


class WorkerError(OomdoctorError):
    """The worker could not do what it was asked for.

    `kind` is that of the protocol's Failure, or timed-out, stopped, killed or crashed.
    """

    def __init__(self, kind: str, message: str, *, hint: str | None = None) -> None:
        """Store what kind of failure it was."""
        super().__init__(message, hint=hint)
        self.kind = kind


class WorkerSession:
    """Starts a worker with its first request, or before, and ends it.

    `python` is the interpreter that has torch (without one: this one), `environment` is set on top
    of the worker's own (None takes a variable away); `progress` hears where it is, and `heard` is
    the last that it told. `stop` is asked several times a second: a reason ends the worker. What
    the worker prints is kept in the file `output`, if that is given.
    """

    def __init__(
        self,
        *,
        python: str | None = None,
        environment: Mapping[str, str | None] | None = None,
        progress: Callable[[str], None] | None = None,
        seconds: float = REQUEST_SECONDS,
        stop: Callable[[], str | None] = lambda: None,
        output: Path | None = None,
    ) -> None:
        """Start nothing yet."""
        self.hello: Hello | None = None
        self.rss_bytes = 0
        self.heard: Progress | None = None
        python = python or sys.executable
        # the worker starts in another folder
        self._python = str(Path(python).absolute()) if os.sep in python else python
        self._environment = {**_ENVIRONMENT, **(environment or {})}
        self._progress = progress
        self._seconds = seconds
        self._stop = stop
        self._output_path = output
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._output: IO[bytes] | None = None
        self._received = bytearray()

    def __enter__(self) -> Self:
        """Start the worker: its imports run while the caller reads configs."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()

    @property
    def pid(self) -> int | None:
        """The number of the worker, and of its process group; None where none runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the worker if none runs."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        self._output = _output_file(self._output_path)
        # the folder of the package is where it runs: a `torch.py` of the user is not torch
        root = Path(__file__).resolve().parents[2]
        command = [self._python, "-m", "oomdoctor.worker", "--fd", str(theirs.fileno())]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=root,
                env=_environment_of(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._output.close()
            raise WorkerError("crashed", f"{self._python} cannot be started: {error}") from error
        finally:
            theirs.close()
        self._line = ours

    def trace(self, request: TraceRequest | RecordRequest) -> Stream:
        """Return the stream of a job; WorkerError where there is none."""
        from oomdoctor.memory.stream_json import from_json

        result = self.ask(request)
        if not isinstance(result, TraceResult):
            raise self._ended("crashed", f"the worker answered with a {type(result).__name__}")
        try:
            return from_json(result.stream)
        except InputError as error:
            raise WorkerError("crashed", f"the worker's stream: {error.message}") from error

    def ask(self, request: object) -> object:
        """Send a request and return its result."""
        self.start()
        deadline = time.monotonic() + self._seconds
        if self.hello is None:
            self._greet(min(deadline, time.monotonic() + START_SECONDS))
        self._send(request)
        while True:
            message = self._receive(deadline)
            if isinstance(message, Progress):
                self._hear(message)
            elif isinstance(message, Failure):
                raise WorkerError(message.kind, message.message, hint=message.hint)
            else:
                self.rss_bytes = max(self.rss_bytes, getattr(message, "rss_bytes", 0))
                return message

    def close(self) -> None:
        """End the worker and all that it started."""
        process, self._process = self._process, None
        if self._line is not None:
            self._line.close()  # the worker ends when nobody listens any more
            self._line = None
        if process is not None:
            _end(process)
        if self._output is not None:
            self._output.close()
            self._output = None
        self._received.clear()
        self.hello = None

    def _greet(self, deadline: float) -> None:
        message = self._receive(deadline)
        if not isinstance(message, Hello):
            raise self._ended("crashed", "the worker did not introduce itself")
        self.hello = message

    def _hear(self, message: Progress) -> None:
        self.heard = message
        self.rss_bytes = max(self.rss_bytes, message.rss_bytes)
        if self._progress is not None and message.text:
            self._progress(message.text)

    def _send(self, request: object) -> None:
        if self._line is None:
            raise WorkerError("crashed", "the worker was closed")
        try:
            self._line.sendall(to_line(request))
        except OSError:
            raise self._ended("crashed", "the worker ended before its work") from None

    def _receive(self, deadline: float) -> object:
        """Return the next message; WorkerError if the worker ends or takes too long."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            self._received += self._read(deadline)
        line = bytes(self._received[: end + 1])
        del self._received[: end + 1]
        try:
            return from_line(line)
        except ProtocolError as error:
            raise self._ended("crashed", f"the worker speaks another protocol: {error}") from error

    def _read(self, deadline: float) -> bytes:
        line = self._line
        while line is None or not select.select([line], [], [], _LOOK_SECONDS)[0]:
            if line is None or time.monotonic() >= deadline:
                raise self._ended("timed-out", f"the worker needed more than {self._seconds:.0f} s")
            reason = self._stop()
            if reason is not None:
                raise self._ended("stopped", reason)
        try:
            data = line.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            raise self._ended("crashed", "the worker ended in the middle of its work")
        return data

    def _ended(self, kind: str, message: str) -> WorkerError:
        """Close the session and return why it ended."""
        process = self._process
        ours = kind in ("timed-out", "stopped")  # the worker still runs
        code = None if process is None or ours else _exit_code(process)
        told = "" if kind == "stopped" else self._told()
        self.close()
        if code is not None and code < 0:
            name = signal_name(-code)
            kind = "killed" if name == "SIGKILL" else kind
            message = f"{message}: {name}"
        hint = HINTS.get(kind)
        return WorkerError(kind, f"{message}\n{told}" if told else message, hint=hint)

    def _told(self) -> str:
        """Return the last lines that the worker printed."""
        if self._output is None:
            return ""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TOLD_BYTES))
        lines = self._output.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_TOLD_LINES:]).strip()


def _output_file(path: Path | None) -> IO[bytes]:
    """Open what takes in the worker's output: a file that is kept, or one that goes at its end."""
    if path is None:
        return tempfile.TemporaryFile()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w+b")


def _environment_of(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return our own environment with some variables set and some taken away."""
    mine = {name: value for name, value in os.environ.items() if name not in changes}
    return {**mine, **{name: value for name, value in changes.items() if value is not None}}


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process group that we started; it is still ours, as nobody waited for it yet."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return
        if _exit_code(process) is not None:
            return
