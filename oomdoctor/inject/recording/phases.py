"""The phases of a recording: told as those of a trial, but not every one of a program that flips.

A program may evaluate a part of its model in each step. After the first ones, a phase is told where
it lasted, or held more than any of its name before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..phases import Phases

if TYPE_CHECKING:
    from ..agent import Agent

_ALWAYS = 100
_LASTING_SECONDS = 1.0
_MORE = 1.01
_PEAK = "peak_allocated_bytes"


class RecordedPhases(Phases):
    """The phase of a process, and how often each was told."""

    def __init__(self, agent: Agent) -> None:
        """Begin with the load."""
        super().__init__(agent)
        self._times: dict[str, int] = {}
        self._highest: dict[str, int] = {}

    def _tell(self) -> None:
        name = self.current
        figures = self.figures()
        peak = figures.get(_PEAK)
        highest = peak if isinstance(peak, int) else 0
        self._times[name] = self._times.get(name, 0) + 1
        before = self._highest.get(name, 0)
        if (
            self._times[name] <= _ALWAYS
            or self.seconds() >= _LASTING_SECONDS
            or highest > before * _MORE
        ):
            self._agent.tell("phase", seconds=round(self.seconds(), 6), **figures)
            self._highest[name] = max(before, highest)
