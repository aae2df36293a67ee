"""Sees a program run out of memory, whether it handles that or not, and sees it fail otherwise."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from . import frames

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeAlias

    from .agent import Agent

Library: TypeAlias = Any
_MOST_TEXT = 4000


class Exceptions:
    """Tells of exceptions that nothing caught, then lets the hook before ours print them."""

    def __init__(self, agent: Agent) -> None:
        """Take the place of the hooks that print."""
        self._agent = agent
        self._report = agent.guarded(_report)
        self._trim = agent.guarded(frames.leave_out_ours)
        self._told: BaseException | None = None
        self._printed = sys.excepthook
        self._printed_by_threads = threading.excepthook
        self._hook, self._thread_hook = self.of_program, self.of_thread
        sys.excepthook = self._hook
        threading.excepthook = self._thread_hook

    def remove(self) -> None:
        """Give the hooks back, where nobody has put another in their place."""
        if sys.excepthook is self._hook:
            sys.excepthook = self._printed
        if threading.excepthook is self._thread_hook:
            threading.excepthook = self._printed_by_threads

    def tell_the_last(self) -> None:
        """Tell of the exception that ended the program, where its own hook stood before ours."""
        value = getattr(sys, "last_value", None)
        if isinstance(value, BaseException) and value is not self._told:
            self._report(self._agent, type(value), value, value.__traceback__, thread=False)

    def tell(self, value: BaseException) -> None:
        """Tell of an exception that goes through a block of ours."""
        self._told = value
        self._report(self._agent, type(value), value, value.__traceback__, thread=False)

    def of_program(
        self, kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> None:
        """Tell of the exception that ends the program, and have it printed."""
        self._told = value
        self._report(self._agent, kind, value, trace, thread=False)
        self._trim(value)
        self._printed(kind, value, trace if value is None else value.__traceback__)

    def of_thread(self, given: threading.ExceptHookArgs) -> None:
        """Tell of the exception that ends a thread, and have it printed."""
        value = given.exc_value
        if value is not None:
            self._report(self._agent, given.exc_type, value, given.exc_traceback, thread=True)
            self._trim(value)
            given = threading.ExceptHookArgs(
                (given.exc_type, value, value.__traceback__, given.thread)
            )
        self._printed_by_threads(given)


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
            **agent.meter.peaks(),
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
        **agent.meter.peaks(),
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
        causes=[type(one).__name__ for one in causes_of(value)],
        frames=frames.of_traceback(trace),
        thread=thread,
    )
    for see in agent.after_error:
        agent.guarded(see)(value, trace)


def causes_of(value: BaseException) -> list[BaseException]:
    """Return an exception and those that it was raised from, or while handling."""
    found = [value]
    while len(found) < 10:
        last = found[-1]
        above = last.__cause__ or last.__context__
        if above is None or above in found:
            break
        found.append(above)
    return found
