"""What the kernel did for want of memory while a command ran: its counts, and its lines."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.probe import memory_groups, processes
from oomdoctor.probe.kernel_log import KernelLog, journal_lines
from oomdoctor.recorder.places import KERNEL_FILE
from oomdoctor.recorder.run_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kernel:
    """The kernel from a moment on; made before the command starts."""

    def __init__(self) -> None:
        """Note what it counts by now, and go to the end of its log."""
        self._log = KernelLog()
        self._before = processes.kernel_kills()
        self._since = time.time()

    def kills(self, groups: Mapping[str, int]) -> dict[str, int]:
        """Return how many it killed for memory: on the machine, and in the run's own groups.

        `groups` are the paths of memory groups with what was counted in them at first.
        """
        found: dict[str, int] = {}
        now = processes.kernel_kills()
        if now is not None and self._before is not None:
            found["on_machine"] = now - self._before
        for path, before in groups.items():
            kills = memory_groups.look(Path(path)).kills
            if kills is not None:
                found["in_group"] = max(found.get("in_group", 0), kills - before)
        return found

    def keep_lines(self, folder: Path, *, abnormal: bool) -> None:
        """Write its lines about memory into the bundle, if there are any."""
        lines = self._log.lines()
        if not lines and abnormal and not self._log.could_read:
            lines = journal_lines(self._since)
        if lines:
            with suppress(OSError):
                write_whole(folder / KERNEL_FILE, "".join(f"{line}\n" for line in lines))
