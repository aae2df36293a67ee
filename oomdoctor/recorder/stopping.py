"""Ends a command that has been silent for as long as was asked: softly first, then for good."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.lab import keeper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.probe.processes import Stat

_SOFT_S = 10.0


class Stopping:
    """The command is told to end; what still runs of it after some seconds is killed."""

    def __init__(self, pid: int) -> None:
        """Tell it."""
        self._until = time.monotonic() + _SOFT_S
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def go_on(self, live: Mapping[int, Stat]) -> None:
        """Kill the processes of the command, once their time is over."""
        if time.monotonic() > self._until:
            for pid, one in live.items():
                keeper.send(pid, one.start_ticks, signal.SIGKILL)
