"""What the exit status of a command means."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """One meaning per number, the same in all commands."""

    DONE = 0  # answered: a cause, not a GPU out-of-memory, or nothing recognised
    FINDINGS = 1  # a finding is at least as severe as --fail-on
    USAGE = 2  # wrong arguments, or no input could be read
    FAULT = 3  # the tool or a rule failed
    INCONCLUSIVE = 4  # not enough evidence: see the next measurement
    REFUSED = 5  # the safety guard refused to go on
    INTERRUPTED = 130  # stopped by Ctrl-C
