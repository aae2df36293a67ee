"""Phases of a program (load, train step, evaluation, save, generation) and the peaks of each.

A phase that is left is told with its peaks and its seconds; one that comes again is told again.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .agent import Agent

LOAD = "load"
TRAIN = "train step"
EVALUATE = "evaluation"
SAVE = "save"
GENERATE = "generation"


class Phases:
    """The phase of a process, from its import of torch to its end."""

    def __init__(self, agent: Agent) -> None:
        """Begin with the load."""
        self.current = LOAD
        self.over: set[str] = set()
        self._agent = agent
        self._began = time.perf_counter()
        self._device_bytes: int | None = None
        self._held = 0

    def enter(self, name: str) -> None:
        """Change to a phase, unless a part of another one (a save, a generation) is under way."""
        if self._held == 0:
            self._change(name)

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Hold a phase for a block; what it calls does not change it."""
        before = self.current
        self._agent.guarded(self.enter)(name)
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self._agent.guarded(self.enter)(before)

    def look(self) -> None:
        """Note what the whole card holds just now."""
        now = self._agent.meter.in_use_bytes()
        if now is not None:
            self._device_bytes = max(now, self._device_bytes or 0)

    def figures(self) -> dict[str, object]:
        """Return the peaks of the phase so far."""
        found: dict[str, object] = {"phase": self.current, **self._agent.meter.peaks()}
        if self._device_bytes is not None:
            found["device_bytes"] = self._device_bytes
        return found

    def seconds(self) -> float:
        """Return how long the phase has lasted."""
        return time.perf_counter() - self._began

    def close(self) -> None:
        """Tell the phase that is under way: the process ends."""
        self._tell()

    def _change(self, name: str) -> None:
        if name == self.current:
            return
        self.look()
        self._tell()
        self.over.add(self.current)
        self.current = name
        self._began = time.perf_counter()
        self._device_bytes = None
        self._agent.meter.reset()

    def _tell(self) -> None:
        self._agent.tell("phase", seconds=round(self.seconds(), 6), **self.figures())
