"""Starts a command as a shell does: its own standard input, group, session and signals."""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SHELL = "/bin/sh"
NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes of a shell for a command that is not there, and for one that cannot be started."""
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    ends: Mapping[int, int],
    mask: Iterable[int],
) -> int:
    """Start it and return its number; `ends` are what its descriptors lead to. OSError: it fails.

    A file without a first line that names its interpreter is one for the shell.
    """
    actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in ends.items()]

    def spawn(words: list[str]) -> int:
        return os.posix_spawnp(
            words[0],
            words,
            environment,
            file_actions=actions,
            setsigmask=list(mask),
            setsigdef=_IGNORED_BY_PYTHON,
        )

    try:
        return spawn(list(command))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    from shutil import which

    return spawn([SHELL, which(command[0]) or command[0], *command[1:]])


def code_of_failure(error: OSError) -> int:
    """Return the exit code that a shell gives a command which does not start."""
    return NOT_FOUND if error.errno == errno.ENOENT else NOT_STARTED


def shell_code(status: int) -> int:
    """Return the exit code as a shell tells it: 128 and the number of the signal that killed."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
