"""Signals while a command runs: what is sent to the recorder alone is passed on to the command.

What a terminal sends (Ctrl-C) reaches both, since they share a process group; so does what a
process of the command sends to its group.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)
_HELD = (*PASSED_ON, signal.SIGCHLD, signal.SIGWINCH, signal.SIGTTOU)
_BY_THE_KERNEL = 0x80  # si_code of what no process has sent: keys of a terminal, a hang-up


class Received:
    """A signal that arrived: its number, who sent it, and whether the kernel did."""

    def __init__(self, found: signal.struct_siginfo) -> None:
        """Take over what the system tells."""
        self.number = found.si_signo
        self.sender = found.si_pid
        self.by_kernel = found.si_code == _BY_THE_KERNEL


class Signals:
    """Holds back all signals that matter while it is entered, and hands them over one by one.

    `before` is the mask that the command gets: the one that we were started with.
    """

    def __init__(self) -> None:
        """Hold nothing back yet."""
        self.before: set[int] = set()

    def __enter__(self) -> Self:
        """Hold back."""
        self.before = set(signal.pthread_sigmask(signal.SIG_BLOCK, _HELD))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Let what arrives from now on have its usual effect; what waits is thrown away."""
        while signal.sigtimedwait(_HELD, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def wait(self, seconds: float) -> Received | None:
        """Return the next signal; None where none arrives in time."""
        try:
            found = signal.sigtimedwait(_HELD, max(seconds, 0.0))
        except InterruptedError:
            return None
        return None if found is None else Received(found)
