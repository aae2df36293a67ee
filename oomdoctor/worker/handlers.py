"""What the worker does for each kind of request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.worker.errors import NoTorchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.lab.protocol import TraceRequest

    Say: TypeAlias = Callable[[str], None]


def traced(request: TraceRequest, say: Say) -> dict[str, Any]:
    """Run a job on the fake card and return its stream as JSON."""
    from oomdoctor.memory.stream_json import to_json

    say("importing torch")
    try:
        import torch  # noqa: F401 - so that its absence has a name
    except ImportError as error:
        raise NoTorchError(
            f"torch cannot be imported: {error}", hint="pip install 'oomdoctor[lab]'"
        ) from error
    from oomdoctor.worker.fake.trace import trace

    say(f"tracing {request.job.model.name}")
    stream = trace(request.job, request.card, phases=request.phases)
    return to_json(stream)
