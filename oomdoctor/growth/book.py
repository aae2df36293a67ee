"""What is known of a run so far: its processes, cards and host, from messages and samples.

    {"type": "step", "pid": 4711, "rank": 0, "t": 1790000000.5, "number": 12, "phase": "train step",
     "allocated_bytes": 1181116, "peak_allocated_bytes": 4181116, "reserved_bytes": 6291456, ...}
    {"t": 12.0, "host": {"available_bytes": ...}, "processes": [{"pid": 4711, "rss_bytes": ...}],
     "devices": [{"index": 0, "total_bytes": ..., "ours_bytes": ..., "others_bytes": ...}]}

A figure that is missing or no number is left out; nothing here fails on a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.growth.points import Track
from oomdoctor.growth.process import ProcessBook, figure, mappings, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.growth.process import Message

OUTSIDE = "seen from outside"


class CardBook:
    """One card as it is seen from outside."""

    def __init__(self, index: int) -> None:
        """Know nothing but its number."""
        self.index = index
        self.total_bytes: int | None = None
        self.used_bytes: int | None = None
        self.ours_bytes: int | None = None
        self.others_bytes: int | None = None
        self.ours = Track()
        self.others = Track()

    def see(self, sample: Message, seconds: float) -> None:
        """Take the card's part of a sample."""
        self.total_bytes = number(sample, "total_bytes", self.total_bytes)
        self.used_bytes = number(sample, "used_bytes")
        self.ours_bytes = number(sample, "ours_bytes")
        self.others_bytes = number(sample, "others_bytes")
        if self.ours_bytes:
            self.ours.add(seconds, seconds, self.ours_bytes)
        if self.others_bytes:
            self.others.add(seconds, seconds, self.others_bytes)


class Book:
    """All that is known of a run; messages and samples may come in any order of files."""

    def __init__(self, started: float | None = None) -> None:
        """Begin at a moment in seconds since 1970; without one, at the first message."""
        self.started = started
        self.seconds = 0.0
        self.processes: dict[str, ProcessBook] = {}
        self.cards: dict[int, CardBook] = {}
        self.job = Track()
        self.job_bytes: int | None = None
        self.available_bytes: int | None = None
        self.total_bytes: int | None = None
        self._shares: dict[int, int] = {}
        """What is proportional of a process less what is resident, as it was seen last."""

    def put(self, told: Iterable[tuple[str | None, Message]]) -> None:
        """Take messages in the order of time, with their process's key; samples have none."""
        for key, message in told:
            if key is None:
                self.see(message)
            else:
                self.hear(key, message)

    def hear(self, key: str, message: Message) -> None:
        """Take a message of the process that is known by this key."""
        told = figure(message, "t")
        when = self.seconds if told is None else told
        if when > _YEARS:
            self.started = when if self.started is None else self.started
            when -= self.started
        self.seconds = max(self.seconds, when)
        process = self.processes.get(key)
        if process is None:
            pid = number(message, "pid") or 0
            process = self.processes[key] = self.processes.pop(_outside(pid), ProcessBook(pid))
        process.hear(message, when)

    def see(self, sample: Message) -> None:
        """Take a sample from outside."""
        told = figure(sample, "t")
        when = self.seconds if told is None else told
        self.seconds = max(self.seconds, when)
        self._see_host(sample.get("host"))
        self._see_processes(mappings(sample.get("processes")), when)
        for one in mappings(sample.get("devices")):
            index = number(one, "index")
            if index is not None:
                self.cards.setdefault(index, CardBook(index)).see(one, when)

    def _see_host(self, host: object) -> None:
        if not isinstance(host, dict):
            return
        self.total_bytes = number(host, "total_bytes", self.total_bytes)
        available = number(host, "available_bytes", self.available_bytes)
        limit, used = number(host, "cgroup_limit_bytes"), number(host, "cgroup_used_bytes")
        if limit is not None:
            self.total_bytes = limit if self.total_bytes is None else min(limit, self.total_bytes)
            left = max(limit - (used or 0), 0)
            available = left if available is None else min(available, left)
        self.available_bytes = available

    def _see_processes(self, seen: Sequence[Message], when: float) -> None:
        known = {one.pid: one for one in self.processes.values()}
        for one in seen:
            pid = number(one, "pid")
            if pid is None:
                continue
            process = known.get(pid)
            if process is None:
                process = known[pid] = self.processes[_outside(pid)] = ProcessBook(pid)
            process.see(one, when)
        self._see_job(seen, when)

    def _see_job(self, seen: Sequence[Message], when: float) -> None:
        """Add the processes up, each shared page once where that is known now and then.

        In between, a process has what it had then and what it has got since.
        """
        parts = []
        for one in seen:
            pid, resident, share = (number(one, name) for name in ("pid", "rss_bytes", "pss_bytes"))
            if pid is not None and resident is not None:
                if share is not None:
                    self._shares[pid] = share - resident
                parts.append(resident + self._shares.get(pid, 0))
        if parts:
            self.job_bytes = sum(parts)
            if not self._shares or any("pss_bytes" in one for one in seen):
                self.job.add(when, when, self.job_bytes)
        here = {number(one, "pid") for one in seen}
        if here:
            self._forget(here)

    def _forget(self, here: set[int | None]) -> None:
        """Forget processes that are gone and told nothing themselves, such as loader workers."""
        for pid in [one for one in self._shares if one not in here]:
            del self._shares[pid]
        for key in [one for one in self.processes if one.startswith(OUTSIDE)]:
            if self.processes[key].pid not in here:
                del self.processes[key]


_YEARS = 1e8
"""Seconds that are more than this count from 1970, others from the start of the run."""


def _outside(pid: int) -> str:
    return f"{OUTSIDE} {pid}"
