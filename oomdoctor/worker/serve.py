"""Answers the requests of a session: reads lines, runs jobs, says that it lives.

The process ends by `os._exit`: everything worth keeping was sent by then, and taking apart what
the libraries hold only takes time.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.lab.protocol import (
    Failure,
    Hello,
    Progress,
    ProtocolError,
    RecordRequest,
    RunRequest,
    TraceRequest,
    TraceResult,
    from_line,
    to_line,
)
from oomdoctor.worker.errors import failure_of
from oomdoctor.worker.handlers import ran, recorded, traced, versions

if TYPE_CHECKING:
    from oomdoctor.model.trial import PhasePeak

_BEAT_SECONDS = 0.5


class Server:
    """One worker's side of the socket."""

    def __init__(self, number: int) -> None:
        """Take over an inherited socket."""
        self._line = socket.socket(fileno=number)
        self._sending = threading.Lock()
        self._text = ""
        self._phases: tuple[PhasePeak, ...] = ()
        self._began = time.monotonic()
        self._busy = threading.Event()

    def run(self) -> None:
        """Serve until the other side closes."""
        self._send(Hello(pid=os.getpid(), versions=versions()))
        threading.Thread(target=self._beat, daemon=True).start()
        _warm_up()
        with self._line.makefile("rb") as lines:
            for line in lines:
                self._answer(line)
        _leave(0)

    def _answer(self, line: bytes) -> None:
        self._began = time.monotonic()
        self._say("")
        self._busy.set()
        try:
            answer = self._result(line)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what a model's code raises is an answer
            answer = failure_of(error)
        finally:
            self._busy.clear()
        self._send(answer)

    def _result(self, line: bytes) -> object:
        try:
            request = from_line(line)
        except ProtocolError as error:
            return Failure(kind="crashed", message=f"the request cannot be read: {error}")
        if isinstance(request, RunRequest):
            return ran(request, self._tell)
        if isinstance(request, RecordRequest):
            return recorded(request, self._say)
        if not isinstance(request, TraceRequest):
            return Failure(kind="crashed", message=f"no request: {type(request).__name__}")
        stream = traced(request, self._say)
        seconds = time.monotonic() - self._began
        return TraceResult(stream=stream, seconds=seconds, rss_bytes=largest_rss())

    def _say(self, text: str) -> None:
        self._text = text

    def _tell(self, text: str, phases: tuple[PhasePeak, ...] = ()) -> None:
        """Say at once where a run is: it may be killed before the next beat."""
        self._text, self._phases = text, phases
        self._send(self._progress())

    def _progress(self) -> Progress:
        seconds = time.monotonic() - self._began
        return Progress(
            text=self._text, seconds=seconds, rss_bytes=largest_rss(), phases=self._phases
        )

    def _beat(self) -> None:
        """Say again and again where the work is; end with the session."""
        while True:
            time.sleep(_BEAT_SECONDS)
            if self._busy.is_set():
                self._send(self._progress())

    def _send(self, message: object) -> None:
        try:
            with self._sending:
                self._line.sendall(to_line(message))
        except OSError:  # nobody listens any more
            _leave(1)


def _warm_up() -> None:
    """Import what every request needs, while the session still prepares its first one."""
    with contextlib.suppress(ImportError):
        from oomdoctor.worker.imports import import_common

        import_common()


def largest_rss() -> int:
    """Return the largest resident size of this process in bytes.

    On Linux `getrusage` counts what the process was before it became this program, and a child is
    its parent until then: a worker that a large process starts would be as large from the start.
    """
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
