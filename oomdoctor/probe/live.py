"""Processes that run, looked at from outside as a recorded run's samples have them.

{"host": {"available_bytes": ...}, "processes": [{"pid": 4711, "name": "python", "rss_bytes": ...}]}

It works on every system that psutil knows. What a system does not tell is left out: only Linux
tells what processes share, and only their owner may look at that.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from oomdoctor.probe import host, processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK")
_SHARES_S = 4.0
"""Seconds between looks at shared pages: a walk through page tables halts the process meanwhile."""


class LiveProcesses:
    """Some processes and all that stem from them."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Watch these from now on."""
        self._began = time.monotonic()
        self._known = {pid: _start(pid) for pid in pids}
        self._ranks: dict[int, int | None] = {}
        self._shares_at = 0.0

    @property
    def are_here(self) -> bool:
        """Whether one of them still runs."""
        return any(_is_live(pid, start) for pid, start in self._known.items())

    def also(self, pids: Iterable[int]) -> None:
        """Watch some more."""
        for pid in pids:
            self._known.setdefault(pid, _start(pid))

    def sample(self, device_bytes: Mapping[int, int | None]) -> dict[str, object]:
        """Return what there is to see just now; `device_bytes` is what the driver tells."""
        now = time.monotonic() - self._began
        memory = host.memory()
        pids = [pid for pid, start in self._known.items() if _is_live(pid, start)]
        every = sorted({one for pid in pids for one in host.descendants(pid)})
        shares = len(every) > 1 and now >= self._shares_at
        found = [self._process(pid, device_bytes.get(pid), shares=shares) for pid in every]
        if shares:
            took = time.monotonic() - self._began - now
            self._shares_at = now + max(_SHARES_S, 100 * took)
        return {
            "t": round(now, 3),
            "host": {
                "available_bytes": memory.available_bytes,
                "total_bytes": memory.total_bytes,
            },
            "processes": [one for one in found if one],
        }

    def _process(self, pid: int, device: int | None, *, shares: bool) -> dict[str, object]:
        try:
            one = psutil.Process(pid)
            told: dict[str, object | None] = {
                "pid": pid,
                "parent": one.ppid(),
                "name": one.name(),
                "rank": self._rank(one),
                "rss_bytes": int(one.memory_info().rss),
                "pss_bytes": processes.proportional_bytes(pid) if shares else None,
                "device_bytes": device,
                "limit_bytes": _limit_bytes(one),
            }
        except psutil.Error:
            return {}
        return {name: value for name, value in told.items() if value is not None}

    def _rank(self, one: psutil.Process) -> int | None:
        """Return the rank that a launcher has given a process, where that may be read."""
        if one.pid not in self._ranks:
            given: dict[str, str] = {}
            with suppress(psutil.Error, OSError):
                given = one.environ()
            told = (given[name] for name in _RANKS if given.get(name, "").isdecimal())
            self._ranks[one.pid] = next((int(value) for value in told), None)
        return self._ranks[one.pid]


def title_of(pid: int) -> str | None:
    """Return how a process was called, None where there is none."""
    try:
        words = psutil.Process(pid).cmdline()
        return " ".join(words) or psutil.Process(pid).name()
    except psutil.AccessDenied:
        return "?"
    except psutil.Error:
        return None


def _limit_bytes(one: psutil.Process) -> int | None:
    """Return what it may hold by a limit of its own on data or on addresses (ulimit -d, -v)."""
    if sys.platform != "linux":
        return None
    memory = one.memory_info()
    limits = []
    for name, used in (("RLIMIT_DATA", memory.data), ("RLIMIT_AS", memory.vms)):
        with suppress(psutil.Error, OSError, AttributeError):
            most = one.rlimit(getattr(psutil, name))[0]
            if most != psutil.RLIM_INFINITY:
                limits.append(int(memory.rss) + max(int(most) - int(used), 0))
    return min(limits, default=None)


def _start(pid: int) -> float | None:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _is_live(pid: int, start: float | None) -> bool:
    try:
        one = psutil.Process(pid)
        return one.status() != psutil.STATUS_ZOMBIE and one.create_time() == start
    except psutil.Error:
        return False
