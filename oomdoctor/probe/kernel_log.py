"""Lines of the kernel about memory since a moment, as far as this user may read them.

[ 5678.901234] python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), ...
[ 5678.901299] Memory cgroup out of memory: Killed process 4711 (python) total-vm:9437184kB, ...
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

DEVICE = "/dev/kmsg"
_JOURNAL = "journalctl"
_RECORD_BYTES = 8192
_MOST_LINES = 5000
_SECONDS = 3.0
_BEGINS = re.compile(r"invoked oom-killer", re.IGNORECASE)
_ENDS = re.compile(
    r"Killed process|oom_reaper: reaped|Out of memory and no killable", re.IGNORECASE
)
_OF_MEMORY = re.compile(
    r"out of memory|oom[-_ ](?:kill|reaper)|killed process|page allocation (?:failure|stall)"
    r"|memory cgroup|NVRM|Xid|segfault|general protection|traps:|hung_task|blocked for more than",
    re.IGNORECASE,
)


class KernelLog:
    """Follows the kernel's log from the moment on at which it is made."""

    def __init__(self, device: str = DEVICE) -> None:
        """Go to the end of the log, if this user may read it."""
        self._file = -1
        self.could_read = False
        with suppress(OSError):
            self._file = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
            self.could_read = True

    def lines(self) -> list[str]:
        """Return what has come since, of memory alone; the log is closed."""
        found: list[str] = []
        if self._file < 0:
            return found
        try:
            while len(found) < _MOST_LINES:
                try:
                    record = os.read(self._file, _RECORD_BYTES)
                except BrokenPipeError:  # it was overwritten before we read it
                    continue
                found.append(printed(record.decode("utf-8", "replace")))
        except OSError:
            pass  # there is no more
        finally:
            os.close(self._file)
            self._file = -1
        return of_memory(found)


def printed(record: str) -> str:
    """Return a record as dmesg prints it: `6,1042,5678901234,-;text` with the time in seconds."""
    head, _, text = record.partition(";")
    microseconds = head.split(",")[2:3]
    line = text.partition("\n")[0]
    if microseconds and microseconds[0].isdecimal():
        return f"[{int(microseconds[0]) / 1e6:12.6f}] {line}"
    return line


def of_memory(lines: list[str]) -> list[str]:
    """Return the lines that speak of memory, and all from the beginning of a kill to its end."""
    kept: list[str] = []
    within = False
    for line in lines:
        within = within or _BEGINS.search(line) is not None
        if within or _OF_MEMORY.search(line):
            kept.append(line)
        within = within and _ENDS.search(line) is None
    return kept


def journal_lines(since: float) -> list[str]:
    """Return the lines that the journal has of memory, where the kernel's own log is closed."""
    import subprocess

    try:
        done = subprocess.run(
            [_JOURNAL, "-k", "-q", "--no-pager", "-o", "short-iso", f"--since=@{since:.0f}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    if done.returncode:
        return []
    return of_memory(done.stdout.decode("utf-8", "replace").splitlines()[-_MOST_LINES:])
