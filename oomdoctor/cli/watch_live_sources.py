"""Processes that run, and the processes on a card, as they are seen from outside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from oomdoctor.cli.watch_sources import GONE, RUNNING
from oomdoctor.errors import ProbeError, UsageError
from oomdoctor.probe import gpu, nvml
from oomdoctor.probe.gpu import NoDriverError
from oomdoctor.probe.live import LiveProcesses, title_of
from oomdoctor.recorder.cards import as_told

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.growth.book import Book
    from oomdoctor.probe.gpu import Device

_PROGRAM_S = 10.0  # nvidia-smi takes a processor for up to a second


class ProcessSource:
    """A process and all that stem from it."""

    def __init__(self, pid: int) -> None:
        """Look for the process; UsageError where there is none."""
        command = title_of(pid)
        if command is None:
            raise UsageError(
                f"there is no process {pid}",
                hint="in a container only its own processes are seen, under numbers of its own",
            )
        self.title = f"process {pid}: {command[:60]}"
        self.is_over = False
        self.notes: tuple[str, ...] = ()
        self._processes = LiveProcesses([pid])
        self._cards = CardLooks()

    def look(self, book: Book) -> str:
        """Take a sample."""
        if not self._processes.are_here:
            self.is_over = True
            return GONE
        try:
            cards = self._cards.look()
        except ProbeError:
            cards = ()
        sample = self._processes.sample(device_bytes_of(cards))
        book.see({**sample, "devices": [as_told(one, pids_of(sample)) for one in cards]})
        return RUNNING


class CardSource:
    """All processes on one card, by the numbers that the driver gives it."""

    def __init__(self, index: int) -> None:
        """Ask for the card; ProbeError where nobody tells, UsageError where there is none such."""
        self._index = index
        self._cards = CardLooks()
        card = self._card()
        self.title = f"card {index}: {card.name}"
        self.is_over = False
        self.notes: tuple[str, ...] = ()
        self._processes = LiveProcesses(one.pid for one in card.processes)

    def look(self, book: Book) -> str:
        """Take a sample of the card and of those of its processes that are seen from here."""
        card = self._card()
        self._processes.also(one.pid for one in card.processes)
        sample = self._processes.sample(device_bytes_of((card,)))
        told = as_told(card, frozenset(one.pid for one in card.processes))
        book.see({**sample, "devices": [told]})
        count = len(card.processes)
        return "1 process" if count == 1 else f"{count} processes"

    def _card(self) -> Device:
        found = {one.index: one for one in self._cards.look()}
        if self._index not in found:
            known = ", ".join(map(str, found)) or "none"
            raise UsageError(f"there is no card {self._index}", hint=f"known cards: {known}")
        return found[self._index]


class CardLooks:
    """Asks for the cards, NVML if it is there, else nvidia-smi, and that one not too often."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Have asked nobody yet."""
        self._clock = clock
        self._ask: Callable[[], tuple[Device, ...]] = nvml.devices
        self._each_s = 0.0
        self._next = 0.0
        self._latest: tuple[Device, ...] = ()

    def look(self) -> tuple[Device, ...]:
        """Return the cards as they were when it was last time to ask; ProbeError without any."""
        now = self._clock()
        if now < self._next:
            return self._latest
        try:
            self._latest = self._ask()
        except NoDriverError as error:
            if self._ask is gpu.devices:
                self._next = float("inf")
                raise ProbeError(
                    f"the cards cannot be looked at: {error.message}",
                    hint="`oomdoctor watch PID` watches host memory without any card",
                ) from error
            self._ask, self._each_s = gpu.devices, _PROGRAM_S
            return self.look()
        self._next = now + self._each_s
        return self._latest


def device_bytes_of(cards: tuple[Device, ...]) -> dict[int, int | None]:
    """Return what each process has of all cards together, as far as the driver tells it."""
    found: dict[int, int | None] = {}
    for one in (process for card in cards for process in card.processes):
        found[one.pid] = None if one.bytes is None else one.bytes + (found.get(one.pid) or 0)
    return found


def pids_of(sample: dict[str, Any]) -> frozenset[int]:
    """Return the processes of a sample."""
    return frozenset(one["pid"] for one in sample["processes"])
