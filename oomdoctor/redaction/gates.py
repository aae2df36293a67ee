"""Finds the lines that hold one of some literals: most patterns concern few lines of a log."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate


class GateLines:
    """The lines of a text by the literals in them, each literal looked for once."""

    def __init__(self, text: str) -> None:
        """Find where the lines begin."""
        self._low = text.lower()
        lengths = (len(line) + 1 for line in self._low.split("\n"))
        self._starts = list(accumulate(lengths, initial=0))
        self._held: dict[str, list[int]] = {}
        self._merged: dict[tuple[str, ...], list[int]] = {}

    def of(self, gates: tuple[str, ...]) -> list[int]:
        """Return the indexes of the lines that hold one of the literals."""
        if gates not in self._merged:
            lines = {line for gate in gates for line in self._with(gate)}
            self._merged[gates] = sorted(lines)
        return self._merged[gates]

    def _with(self, gate: str) -> list[int]:
        if gate not in self._held:
            self._held[gate] = found = []
            at = self._low.find(gate)
            while at >= 0:
                line = bisect_right(self._starts, at) - 1
                found.append(line)
                at = self._low.find(gate, self._starts[line + 1])
        return self._held[gate]
