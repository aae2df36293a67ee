"""The memory that a tree of processes holds on the host, each shared page counted once."""

from __future__ import annotations

import re
import time
from pathlib import Path

from oomdoctor.lab import keeper

_LEAST_S = 0.2
_SHARE = 20  # reading takes at most a twentieth of the time: it walks the page tables
_PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


class HostUse:
    """Looks at the processes below a keeper now and then, and keeps the highest sum."""

    def __init__(self, keeper_pid: int) -> None:
        """Look at nothing yet."""
        self.peak_bytes = 0
        self._root = keeper_pid
        self._next = 0.0

    def look(self) -> None:
        """Look, if it is time."""
        began = time.monotonic()
        if began < self._next:
            return
        total = sum(map(proportional_bytes, keeper.descendants(self._root)))
        self.peak_bytes = max(self.peak_bytes, total)
        ended = time.monotonic()
        self._next = ended + max(_LEAST_S, _SHARE * (ended - began))


def proportional_bytes(pid: int) -> int:
    """Return what a process holds, shared pages split among their holders; 0 if it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = _PSS.search(text)
    return int(found[1]) << 10 if found else 0
