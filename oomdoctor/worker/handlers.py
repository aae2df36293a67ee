"""What the worker does for each kind of request."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.worker.errors import NoTorchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.lab.protocol import RecordRequest, RunRequest, RunResult, TraceRequest
    from oomdoctor.model.trial import PhasePeak

    Say: TypeAlias = Callable[[str], None]
    Tell: TypeAlias = Callable[[str, tuple[PhasePeak, ...]], None]

_LIBRARIES = ("torch", "transformers", "peft", "trl", "bitsandbytes", "accelerate", "deepspeed")


def traced(request: TraceRequest, say: Say) -> dict[str, Any]:
    """Run a job on the fake card and return its stream as JSON."""
    from oomdoctor.memory.stream_json import to_json

    say("importing torch")
    _need_torch()
    from oomdoctor.worker.fake.trace import trace
    from oomdoctor.worker.imports import import_for

    say("importing the code of the model")
    import_for(request.job)
    say(f"tracing {request.job.model.name}")
    values = to_json(trace(request.job, request.card, phases=request.phases))
    values["facts"]["versions"] = versions()
    return values


def ran(request: RunRequest, tell: Tell) -> RunResult:
    """Run a job on real tensors and return how far it came."""
    tell("importing torch", ())
    _need_torch()
    from oomdoctor.worker.imports import import_for

    tell("importing the code of the model", ())
    import_for(request.job)
    from oomdoctor.worker.trials.run import run

    return run(request, tell)


def recorded(request: RecordRequest, say: Say) -> object:
    """Run a job on the card of this process and return the stream that torch's allocator got."""
    say("importing torch")
    _need_torch()
    from oomdoctor.worker.history import forked

    return forked.recorded(request, say)


def _need_torch() -> None:
    try:
        import torch  # noqa: F401 - so that its absence has a name
    except ImportError as error:
        raise NoTorchError(
            f"torch cannot be imported: {error}", hint="pip install 'oomdoctor[lab]'"
        ) from error


def versions() -> dict[str, str]:
    """Return which libraries are installed, without importing them."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
