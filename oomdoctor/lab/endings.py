"""How a process ended, in words: the name of the signal, and what helps.

signal_name(9)  ->  SIGKILL
"""

from __future__ import annotations

import signal

HINTS = {
    "killed": "the host may have run out of memory",
    "crashed": "code that ends its own process, or a library that crashes, cannot be traced",
    "timed-out": "give a smaller job, or code that comes to an end",
}
"""What helps, by the kind of failure."""


def signal_name(number: int) -> str:
    """Return a signal's name; those between SIGRTMIN and SIGRTMAX have none of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
