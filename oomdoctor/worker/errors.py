"""Why a worker could not do what it was asked for; each becomes a Failure of the same kind."""

from __future__ import annotations

import traceback

from oomdoctor.lab.protocol import Failure


class WorkerError(Exception):
    """A fault with the kind that the protocol names, and a remedy."""

    kind = "crashed"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        """Store the message and what helps."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class UnsupportedError(WorkerError):
    """The job asks for what cannot be run here."""

    kind = "unsupported"


class NeedsFilesError(WorkerError):
    """The model's code is in files that are not here."""

    kind = "model-code-needs-files"


class ShimFailedError(WorkerError):
    """This build of torch has no fake card."""

    kind = "shim-failed"


class NoTorchError(WorkerError):
    """torch, or a library that the job needs, is not installed."""

    kind = "no-torch"


def failure_of(error: BaseException) -> Failure:
    """Return what an error of a request is to who asked; one that nobody foresaw is printed."""
    if isinstance(error, WorkerError):
        return Failure(kind=error.kind, message=error.message, hint=error.hint)
    traceback.print_exception(error)
    if isinstance(error, ImportError):
        return Failure(kind="no-torch", message=f"a library is missing: {error}")
    return Failure(kind="unsupported", message=_in_a_line(error))


def _in_a_line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
