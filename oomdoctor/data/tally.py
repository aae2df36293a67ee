"""What pieces come to: counts by length, the longest rows, the rows that could not be counted."""

from __future__ import annotations

import heapq
from collections import Counter

from oomdoctor.record import NamedTuple

MOST_LONGEST = 20
MOST_FAULTS = 20


class Place(NamedTuple):
    """A row: its file, its line (or row of a table), and what was found there."""

    name: str
    line: int
    tokens: int
    characters: int
    layout: str


class Fault(NamedTuple):
    """A row that could not be counted, and why."""

    name: str
    line: int
    reason: str


class Tally:
    """Grows as rows are counted, and is added to others; what it holds is bounded.

    `lengths` counts sequences by their tokens; a preference pair is one row and two sequences.
    """

    __slots__ = (
        "characters",
        "faults",
        "first_faults",
        "layouts",
        "lengths",
        "lines",
        "longest",
        "pictures",
        "rows",
    )

    def __init__(self) -> None:
        """Start with nothing."""
        self.lengths: Counter[int] = Counter()
        self.layouts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.first_faults: list[Fault] = []
        self.longest: list[Place] = []
        self.rows = self.lines = self.characters = self.pictures = 0

    def add_row(self, places: list[Place], *, layout: str, pictures: int) -> None:
        """Count a row with its sequences."""
        self.rows += 1
        self.layouts[layout] += 1
        self.pictures += pictures
        for place in places:
            self.lengths[place.tokens] += 1
            self.characters += place.characters
        longest = max(places, key=lambda place: place.tokens)
        self.longest.append(longest)
        if len(self.longest) > 8 * MOST_LONGEST:
            self._cut()

    def add_fault(self, fault: Fault) -> None:
        """Count a row that cannot be counted."""
        self.faults[fault.reason] += 1
        if len(self.first_faults) < MOST_FAULTS:
            self.first_faults.append(fault)

    def moved(self, lines: int) -> None:
        """Add to the numbers of all lines, once it is known where the piece begins."""
        self._cut()
        self.longest = [one._replace(line=one.line + lines) for one in self.longest]
        self.first_faults = [one._replace(line=one.line + lines) for one in self.first_faults]

    def add(self, other: Tally) -> None:
        """Add what a later piece came to."""
        self.lengths.update(other.lengths)
        self.layouts.update(other.layouts)
        self.faults.update(other.faults)
        room = MOST_FAULTS - len(self.first_faults)
        self.first_faults += other.first_faults[:room]
        self.longest += other.longest
        self._cut()
        self.rows += other.rows
        self.lines += other.lines
        self.characters += other.characters
        self.pictures += other.pictures

    def _cut(self) -> None:
        self.longest = heapq.nlargest(MOST_LONGEST, self.longest, key=lambda one: one.tokens)
