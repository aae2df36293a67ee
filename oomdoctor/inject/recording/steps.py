"""Tells the steps of a recording, in as many lines as cost little: fast ones are summed up.

The time that telling takes is measured, and the next line comes after two hundred times as long.
After each two thousand lines the least time between two of them doubles, so that the file of a run
of weeks stays readable. A process that calls models and steps no optimizer is told as samples.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from ..steps import Steps, ids_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..agent import Agent
    from ..phases import Phases
    from .history import History
    from .meter import RecordingMeter

Library: TypeAlias = Any
_ALWAYS = 200
_JUST_NOW = ("allocated_bytes", "reserved_bytes", "inactive_split_bytes", "rss_bytes", "cards")
_TIMES = 200.0
_LINES = 2000
_SAMPLE_SECONDS = 1.0
_LEAST_SECONDS = 0.02


class RecordedSteps(Steps):
    """The steps of a process that nobody ends."""

    def __init__(
        self, agent: Agent, phases: Phases, meter: RecordingMeter, history: History
    ) -> None:
        """Count nothing yet."""
        super().__init__(agent, phases)
        self._meter = meter
        self._history = history
        self._longest = 0
        self._shape: tuple[int, ...] = ()
        self._summed = 0
        self._phase = ""
        self._lines = 0
        self._next = 0.0
        self._next_sample = time.perf_counter() + _SAMPLE_SECONDS
        self._interval = _LEAST_SECONDS

    def saw_root(self, module: Library, arguments: Library, named: Library) -> None:
        """Follow the phase, the tokens and the longest row; tell a sample where no step comes."""
        super().saw_root(module, arguments, named)
        ids = ids_of(self._agent.torch, arguments, named)
        self._shape = tuple(map(int, ids.shape)) if ids is not None else ()
        if self._shape:
            self._longest = max(self._longest, self._shape[-1])
        now = time.perf_counter()
        if now >= self._next_sample:
            figures = self._phases.figures()
            more = {"longest": self._longest} if self._longest else {}
            self._agent.tell("sample", number=self.number, **more, **figures)
            self._after(now, _SAMPLE_SECONDS)

    def stepped(self) -> None:
        """Count a step, and tell it with those before it that were not told."""
        self.number += 1
        self._summed += 1
        self._phase = self._phases.current
        now = time.perf_counter()
        if self.number <= _ALWAYS or now >= self._next:
            self._tell(now)
        for listener in self._agent.after_step:
            self._agent.guarded(listener)(self.number)

    def close(self) -> None:
        """Tell the steps that were not told yet; what is held by now is no step's any more."""
        if self._summed:
            self._tell(time.perf_counter(), without=_JUST_NOW)

    def under_way(self) -> dict[str, object]:
        """Return where the process is: steps that are over, and the ids of the last call."""
        found: dict[str, object] = {"step": self.number}
        if len(self._shape) == 2:
            found.update(rows=self._shape[0], longest=self._shape[1])
        if self._shape:
            found["tokens"] = math.prod(self._shape)
        return found

    def _tell(self, now: float, without: tuple[str, ...] = ()) -> None:
        seconds = now - self._last if self._last else None
        fields: dict[str, object] = {
            "number": self.number,
            "seconds": None if seconds is None else round(seconds, 6),
            "tokens": self._tokens or None,
            "longest": self._longest or None,
            "steps": self._summed if self._summed > 1 else None,
            "phase": self._phase,
            **self._meter.step(),
        }
        told = {key: one for key, one in fields.items() if one is not None and key not in without}
        self._agent.tell("step", **told)
        self._history.stepped(self.number, self._meter.allocations, seconds or 0.0)
        self._last = now
        self._tokens = self._longest = self._summed = 0
        self._after(now, self._interval)

    def _after(self, began: float, least: float) -> None:
        """Decide when the next line may come."""
        now = time.perf_counter()
        self._lines += 1
        if self._lines % _LINES == 0:
            self._interval *= 2
        self._next = now + max(least, self._interval, (now - began) * _TIMES)
        self._next_sample = max(self._next, now + _SAMPLE_SECONDS)
