"""Records each job in a fork of the worker, so that one after the other begins with an empty card.

A process that has used a card keeps workspaces, handles and caches, which another job would find
again; and importing the libraries anew for each job would take longer than most jobs. CUDA begins
in the fork. The fork writes the messages of the protocol into a pipe.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoctor.lab.endings import signal_name
from oomdoctor.lab.protocol import Failure, Progress, TraceResult, from_line, to_line
from oomdoctor.worker.errors import UnsupportedError, failure_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from oomdoctor.lab.protocol import RecordRequest

LOG = "OOMDOCTOR_VIRTUAL_LOG"
"""Names the file where a virtual card writes down what it does not model (oomdoctor/virtual)."""
IMPORTED_FIRST = ("transformers.models.auto.modeling_auto", "oomdoctor.worker.run.job")


def recorded(request: RecordRequest, say: Callable[[str], None]) -> object:
    """Return the answer to a request: a TraceResult, or the Failure of the fork."""
    import torch

    for name in IMPORTED_FIRST:
        with suppress(ImportError):  # the fork says what it lacks
            importlib.import_module(name)
    torch.cuda._is_in_bad_fork = bool  # a virtual card that was only looked at survives a fork
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                _answer(request, pipe)
            code = 0
        finally:
            os._exit(code)  # whatever happens, the fork never goes on as the worker
    os.close(writing)
    answer: object = None
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            message = from_line(line)
            if isinstance(message, Progress):
                say(message.text)
            else:
                answer = message
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if answer is not None:
        return answer
    how = signal_name(-code) if code < 0 else f"exit code {code}"
    return Failure(kind="crashed", message=f"the run ended in the middle: {how}")


def _answer(request: RecordRequest, pipe: BinaryIO) -> None:
    """Run the job, and write how far it is and what came of it."""
    began = time.monotonic()

    def say(text: str) -> None:
        pipe.write(to_line(Progress(text=text, seconds=time.monotonic() - began)))
        pipe.flush()

    answer: object
    try:
        with tempfile.TemporaryDirectory(prefix="oomdoctor-history-") as folder:
            values = _record(request, Path(folder) / "log", say)
        answer = TraceResult(stream=values, seconds=time.monotonic() - began, rss_bytes=0)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what a model's code raises is an answer
        answer = _want_of_memory(error) or failure_of(error)
    pipe.write(to_line(answer))
    sys.stdout.flush()
    sys.stderr.flush()


def _want_of_memory(error: BaseException) -> Failure | None:
    """Return torch's own words where the card has too little; None for any other error."""
    import torch

    from oomdoctor.worker.trials.failures import told

    found = told(error, torch.device("cuda"))
    if found is None or found.backend != "cuda":
        return None
    where = f" in {found.site}" if found.site else ""
    return Failure(kind="oom", message=f"{found.exception}{where}: {found.message}")


def _record(request: RecordRequest, log: Path, say: Callable[[str], None]) -> dict[str, Any]:
    os.environ[LOG] = str(log)
    import torch

    from oomdoctor.memory.stream_json import to_json
    from oomdoctor.worker.history.recorder import record
    from oomdoctor.worker.imports import import_for

    if not torch.cuda.is_available():
        raise UnsupportedError("torch finds no CUDA device here")
    import_for(request.job)
    stream = record(request.job, request.card, request.settings, phases=request.phases, say=say)
    values = to_json(stream)
    values["facts"]["log"] = log.read_text("utf-8", "replace") if log.exists() else ""
    return values
