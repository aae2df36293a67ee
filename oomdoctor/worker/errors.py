"""Why a worker could not do what it was asked for; each becomes a Failure of the same kind."""

from __future__ import annotations


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
