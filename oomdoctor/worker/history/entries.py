"""Turns the entries of torch's memory history into a stream's events, and moments into marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.memory.stream import Allocation, Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

SEGMENTS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")


class Entries:
    """Takes the entries of a trace one by one.

    `heard` are moments, each a kind of mark and its text; an entry has the number of the last
    moment before it as its metadata.
    """

    def __init__(self, heard: Sequence[tuple[str, str]]) -> None:
        """Begin with nothing allocated."""
        self.allocations: list[Allocation] = []
        self.events: list[int] = []
        self.marks: list[Mark] = []
        self.segments = dict.fromkeys(SEGMENTS, 0)
        self._heard = heard
        self._passed = 0
        self._phase = self._part = ""
        self._alive: dict[int, int] = {}

    def take(self, entry: dict[str, Any]) -> None:
        """Take the next entry."""
        for kind, text in self._heard[self._passed + 1 : int(entry["user_metadata"] or 0) + 1]:
            self._passed += 1
            if kind == "phase":
                self._phase, self._part = text, ""
            elif kind == "part":
                self._part = text
            self.marks.append(Mark(len(self.events), kind, text))
        action, address = entry["action"], entry.get("addr", 0)
        if action == "alloc":
            number = self._alive[address] = len(self.allocations)
            self.allocations.append(
                Allocation(entry["size"], "", "", self._phase, self._part, "", entry["stream"])
            )
            self.events.append(number)
        elif action == "free_completed":
            self.events.append(~self._alive.pop(address))
        elif action in self.segments:
            self.segments[action] += 1
