"""Sees a program run out of memory, whether it handles that or not, and sees it fail otherwise."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

from . import frames, meters

if TYPE_CHECKING:
    from types import TracebackType

    from .agent import Agent

Library: TypeAlias = Any
_MOST_TEXT = 4000


def watch_exceptions(agent: Agent) -> None:
    """Tell of an exception that nothing caught, then let the hook before ours print it."""
    report = agent.guarded(_report)
    printed = sys.excepthook
    printed_by_threads = threading.excepthook

    def excepthook(
        kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> None:
        report(agent, kind, value, trace, thread=False)
        printed(kind, value, trace)

    def thread_excepthook(given: threading.ExceptHookArgs) -> None:
        if given.exc_value is not None:
            report(agent, given.exc_type, given.exc_value, given.exc_traceback, thread=True)
        printed_by_threads(given)

    sys.excepthook = excepthook
    threading.excepthook = thread_excepthook


def watch_cuda(agent: Agent) -> None:
    """Cap the allocator and observe its refusals, once the program uses a card and not before."""
    torch = agent.torch
    if torch.version.cuda is None:
        return

    def when_used() -> None:
        cap = agent.settings.cap_bytes
        for index in range(torch.cuda.device_count() if cap is not None else 0):
            total = torch.cuda.get_device_properties(index).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, cap / total), index)
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None) or getattr(
            torch._C, "_cuda_attachOutOfMemoryObserver", None
        )
        if attach is not None:
            attach(agent.guarded(observe))

    def observe(device: int, requested: int, total: int, free: int) -> None:
        agent.tell(
            "oom",
            device=device,
            requested_bytes=requested,
            card_bytes=total,
            free_bytes=free,
            exception="OutOfMemoryError",
            frames=frames.of_stack(sys._getframe()),
            **meters.peaks(agent),
        )

    torch.cuda._lazy_call(agent.guarded(when_used))


def tell_counted(agent: Agent, requested: int, live: int) -> None:
    """Tell that the counter of host tensors refuses a request."""
    agent.tell(
        "oom",
        requested_bytes=requested,
        live_bytes=live,
        exception="OutOfMemoryError",
        frames=frames.of_stack(sys._getframe()),
        **meters.peaks(agent),
    )


def _report(
    agent: Agent,
    kind: type[BaseException],
    value: BaseException,
    trace: TracebackType | None,
    *,
    thread: bool,
) -> None:
    if issubclass(kind, (SystemExit, KeyboardInterrupt)):
        return
    agent.tell(
        "error",
        exception=kind.__name__,
        text=str(value)[:_MOST_TEXT],
        causes=[type(one).__name__ for one in _causes(value)],
        frames=frames.of_traceback(trace),
        thread=thread,
    )


def _causes(value: BaseException) -> list[BaseException]:
    """Return an exception and those that it was raised from, or while handling."""
    found = [value]
    while len(found) < 10:
        last = found[-1]
        above = last.__cause__ or last.__context__
        if above is None or above in found:
            break
        found.append(above)
    return found
