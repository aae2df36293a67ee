"""Reads what a process holds without changing what the program sees: no sync, no reset of its own.

{"allocated_bytes": 1181116, "reserved_bytes": 20971520, "peak_allocated_bytes": 9181116,
 "peak_reserved_bytes": 20971520, "inactive_split_bytes": 4096, "retries": 1,
 "rss_bytes": 398458880}
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..meters import Meter, host_peak_bytes, uses_cuda
from .peaks import ALLOCATED, RESERVED, OwnPeaks

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..agent import Agent

Library: TypeAlias = Any
_LOOK_AT_ALL = 64  # looks, until cards that held nothing are asked again
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class RecordingMeter(Meter):
    """Figures just now, and peaks since the last look or the last phase."""

    def __init__(self, agent: Agent) -> None:
        """Know whom to ask."""
        super().__init__(agent)
        self.own = OwnPeaks()
        self.allocations = 0  # that torch has made so far, on all cards
        self._phase: dict[int, tuple[int, int]] = {}
        self._step: dict[int, tuple[int, int]] = {}
        self._used: list[int] = []
        self._looks = 0

    def peaks(self) -> dict[str, object]:
        """Return the figures just now with the peaks of the phase."""
        found = self._figures(self._phase)
        highest = host_peak_bytes()
        if highest is not None:
            found["host_bytes"] = highest
        return found

    def step(self) -> dict[str, object]:
        """Return the figures just now with the peaks since the last look, and begin anew."""
        found = self._figures(self._step)
        self._begin_anew()
        self._step.clear()
        return found

    def reset(self) -> None:
        """Begin with a phase."""
        if uses_cuda(self._agent.torch):
            self._cards()
            self._begin_anew()
        self._phase.clear()

    def in_use_bytes(self) -> int | None:
        """Ask nothing of the driver: what all processes use is seen from outside."""
        return None

    def settle(self) -> None:
        """Wait for nothing: the program's own order of work stays."""

    def _begin_anew(self) -> None:
        for index in self._used:
            self.own.reset(index)

    def _figures(self, peaks: dict[int, tuple[int, int]]) -> dict[str, object]:
        found: dict[str, object] = {}
        cards = self._cards() if uses_cuda(self._agent.torch) else []
        for card in cards:
            highest = peaks[card["index"]]
            card["peak_allocated_bytes"], card["peak_reserved_bytes"] = highest
        if cards:
            fullest = dict(max(cards, key=lambda one: one["peak_reserved_bytes"]))
            fullest["device"] = fullest.pop("index")
            found.update(fullest)
        if len(cards) > 1:
            found["cards"] = cards
        resident = rss_bytes()
        if resident is not None:
            found["rss_bytes"] = resident
        return found

    def _cards(self) -> list[dict[str, int]]:
        """Return the figures of each card that this process has used."""
        if self._looks % _LOOK_AT_ALL == 0 or not self._used:
            indices = list(range(self._agent.torch.cuda.device_count()))
        else:
            indices = self._used
        self._looks += 1
        looked = [(index, self.own.look(index)) for index in indices]
        looked = [(index, stats) for index, stats in looked if _all(stats, RESERVED)["peak"]]
        self._used = [index for index, _ in looked]
        self.allocations = sum(_all(stats, "allocation")["allocated"] for _, stats in looked)
        cards = [_card(index, stats) for index, stats in looked]
        for card in cards:  # a look of either may begin anew, and both have to know the highest
            for peaks in (self._phase, self._step):
                before = peaks.get(card["index"], (0, 0))
                now = (card["peak_allocated_bytes"], card["peak_reserved_bytes"])
                peaks[card["index"]] = (max(before[0], now[0]), max(before[1], now[1]))
        return cards


def rss_bytes() -> int | None:
    """Return what of this process is resident just now."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


def _card(index: int, stats: Library) -> dict[str, int]:
    allocated, reserved = _all(stats, ALLOCATED), _all(stats, RESERVED)
    return {
        "index": index,
        "allocated_bytes": allocated["current"],
        "reserved_bytes": reserved["current"],
        "peak_allocated_bytes": allocated["peak"],
        "peak_reserved_bytes": reserved["peak"],
        "inactive_split_bytes": _all(stats, "inactive_split_bytes")["current"],
        "retries": int(stats.get("num_alloc_retries", 0)),
    }


def _all(stats: Library, name: str) -> dict[str, int]:
    figures = stats.get(name, {}).get("all", {})
    return {key: int(figures.get(key, 0)) for key in ("current", "peak", "allocated")}
