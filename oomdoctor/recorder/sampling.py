"""Looks at a running command from outside: its processes, the host, its memory group, the cards.

{"t": 12.0, "host": {"available_bytes": 51539607552, ...},
 "processes": [{"pid": 4711, "parent": 4710, "name": "python", "rank": 0, "rss_bytes": 2147483648}]}

Each kind of look has its share of the time: one that takes long is repeated less often.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.probe import memory_groups, processes
from oomdoctor.recorder.places import SAMPLES_FILE

if TYPE_CHECKING:
    from oomdoctor.probe.memory_groups import MemoryGroup
    from oomdoctor.probe.processes import Stat
    from oomdoctor.recorder.cards import Cards

EACH_S = 1.0
_FIRST_S = 0.1
_SHARES = 400  # a sample, with all that is looked at for it, takes a four-hundredth of the time
_SEARCH_SHARES = 1000
_PAGE_SHARES = 1000  # of these; the walk through page tables halts the process meanwhile
_CREDIT_S = 0.03
_MOST_PROCESSES = 512
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK")
_TICKS = os.sysconf("SC_CLK_TCK")


class Paced:
    """Says when it is time for something again, so that it takes but a share of all time.

    It is time more often at first, and a little may be spent at once: a command may be over within
    a second.
    """

    def __init__(self, shares: int, least_s: float = EACH_S) -> None:
        """Let it be time at once."""
        self._shares = shares
        self._least_s = least_s
        self._first_s = _FIRST_S
        self._since = time.monotonic()
        self._next = 0.0
        self._began = 0.0
        self._spent = -_CREDIT_S

    def is_due(self) -> bool:
        """Say whether it is time."""
        return time.monotonic() >= self._next

    def begin(self) -> None:
        """Note that it begins: what this thread works from here on is what it takes."""
        self._began = time.thread_time()

    def end(self) -> None:
        """Note that it is done."""
        self._spent += time.thread_time() - self._began
        least_s = min(self._least_s, self._first_s)
        self._first_s *= 2
        self._next = max(time.monotonic() + least_s, self._since + self._shares * self._spent)

    def wait_s(self) -> float:
        """Return how long it is until it is time."""
        return max(0.0, self._next - time.monotonic())


class Sampler:
    """Writes a sample whenever it is time, and knows which processes belong to the command."""

    def __init__(self, folder: Path, root: int, *, began: float, cards: Cards | None) -> None:
        """Look at nothing yet; `began` is when the command started, on the monotonic clock."""
        self.known: dict[int, int] = {}  # all processes of the command by now, with their start
        self.groups: dict[str, int] = {}  # kills that each of its memory groups had at first
        self._last_group: MemoryGroup | None = None
        self._root = root
        self._began = began
        self._cards = cards
        self._path = folder / SAMPLES_FILE
        self._ranks: dict[int, int | None] = {}
        self._pace = Paced(_SHARES)
        self._search = Paced(_SEARCH_SHARES)
        self._pages = Paced(_PAGE_SHARES, least_s=5 * EACH_S)
        self._file = -1
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._file = os.open(self._path, flags, 0o644)

    def wait_s(self) -> float:
        """Return how long it is until the next sample."""
        return self._pace.wait_s()

    def look(self) -> None:
        """Take a sample if it is time."""
        if not self._pace.is_due():
            return
        self._pace.begin()
        try:
            self._write(self._sample())
        finally:
            self._pace.end()

    def live(self) -> dict[int, Stat]:
        """Return the processes of the command that run, also those whose parents are gone."""
        found = {}
        for pid, start in list(self.known.items()):
            one = processes.stat(pid)
            if one is None or one.start_ticks != start or not one.is_alive:
                del self.known[pid]
                self._ranks.pop(pid, None)
            else:
                found[pid] = one
        return found

    def work_seconds(self) -> float:
        """Return what the processes that run have worked so far, all together."""
        return sum(one.work_ticks for one in self.live().values()) / _TICKS

    def search(self) -> None:
        """Find the processes that stem from the command, if it is time."""
        if not self._search.is_due():
            return
        self._search.begin()
        for pid, one in processes.tree(self._root, *self.live()).items():
            self.known[pid] = one.start_ticks
        self._search.end()

    def _sample(self) -> dict[str, object]:
        self.search()
        live = self.live()
        sample: dict[str, object] = {"t": round(time.monotonic() - self._began, 3)}
        sample["host"] = self._host(live)
        pages = self._pages.is_due()
        if pages:
            self._pages.begin()
        listed = list(live.items())[:_MOST_PROCESSES]
        sample["processes"] = [self._process(pid, one, pages=pages) for pid, one in listed]
        if pages:
            self._pages.end()
        cards = None if self._cards is None else self._cards.latest(frozenset(live))
        if cards is not None:
            sample["devices"] = cards
        return sample

    def _host(self, live: dict[int, Stat]) -> dict[str, int]:
        info = processes.memory_info()
        found: dict[str, int | None] = {
            "available_bytes": info.get("MemAvailable"),
            "total_bytes": info.get("MemTotal"),
            "swap_used_bytes": info.get("SwapTotal", 0) - info.get("SwapFree", 0),
        }
        group = self._group(live)
        if group is not None:
            found["cgroup_limit_bytes"] = group.limit_bytes
            found["cgroup_used_bytes"] = group.used_bytes
            found["cgroup_peak_bytes"] = group.peak_bytes
            found["cgroup_kills"] = group.kills
        return {name: value for name, value in found.items() if value is not None}

    def _group(self, live: dict[int, Stat]) -> MemoryGroup | None:
        """Return the memory group of the command; one that ends is in none, and was in the last."""
        found = memory_groups.group_of(self._root) if self._root in live else None
        last = self._last_group
        if last is not None and (found is None or found.limit_bytes is None):
            return memory_groups.look(Path(last.path))
        found = found or memory_groups.group_of("self")
        if found is not None:
            self.groups.setdefault(found.path, found.kills or 0)
            self._last_group = found if found.limit_bytes is not None else None
        return found

    def _process(self, pid: int, one: Stat, *, pages: bool) -> dict[str, object]:
        use = processes.host_use(pid)
        found: dict[str, object] = {
            "pid": pid,
            "parent": one.parent,
            "start": one.start_ticks,
            "name": one.name,
            "rank": self._rank(pid),
            "state": one.state,
            "work_seconds": round(one.work_ticks / _TICKS, 2),
            "rss_bytes": use.resident_bytes,
            "peak_rss_bytes": use.peak_resident_bytes,
            "anonymous_bytes": use.anonymous_bytes,
            "shared_memory_bytes": use.shared_memory_bytes,
            "swapped_bytes": use.swapped_bytes or None,
            "threads": use.threads,
        }
        limit = processes.address_limit_bytes(pid)
        if limit is not None:
            found["address_limit_bytes"] = limit
            found["peak_address_bytes"] = use.peak_address_bytes
        if pages:
            found["pss_bytes"] = processes.proportional_bytes(pid)
        return {name: value for name, value in found.items() if value is not None}

    def _rank(self, pid: int) -> int | None:
        """Return the rank that a launcher has given a process."""
        if pid not in self._ranks:
            given = processes.environment(pid)
            told = (given[name] for name in _RANKS if given.get(name, "").isdecimal())
            self._ranks[pid] = next((int(one) for one in told), None)
        return self._ranks[pid]

    def _write(self, sample: dict[str, object]) -> None:
        if self._file >= 0:
            os.write(self._file, json.dumps(sample, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
