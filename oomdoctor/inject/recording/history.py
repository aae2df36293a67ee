"""Keeps torch's memory history in a ring, so that a snapshot at the end has the last steps.

The stack of an allocation costs about a microsecond. Where a program makes so many that this would
be felt, stacks are taken in some of its steps only, and always in the first ones: weights,
optimizer states and whatever leaks from step to step are made there, too. A program that records
its own history is left alone, and gets ours back when it stops.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..agent import Agent

Library: TypeAlias = Any
_STACK_SECONDS = 1.0e-6  # of one allocation, measured: 0.8 at a depth of 5, 1.5 at 100
_MOST_SHARE = 0.015  # of the time of a step
_ALWAYS_STEPS = 100
_RAREST = 50


class History:
    """The memory history of a process: ours, the program's own, or none."""

    def __init__(self, agent: Agent, entries: int) -> None:
        """Keep so many entries; none, if 0."""
        self.is_on = False
        self._agent = agent
        self._entries = entries
        self._record: Library = None
        self._memory: Library = None
        self._ours: Library = None
        self._is_foreign = False
        self._with_stacks = False
        self._every = 1
        self._allocations = 0
        self._looks = 0

    def install(self, torch: Library) -> None:
        """See what the program itself does with its history; nothing of ours is on yet."""
        self._memory = torch.cuda.memory
        self._record = getattr(self._memory, "_record_memory_history", None)
        if self._record is None or not self._entries:
            return
        original = self._record

        @functools.wraps(original)
        def by_the_program(*given: Library, **named: Library) -> Library:
            self._agent.guarded(self._step_aside)()
            result = original(*given, **named)
            enabled = given[0] if given else named.get("enabled", "all")
            if not enabled:
                self._agent.guarded(self._take_up)()
            return result

        self._ours = self._memory._record_memory_history = by_the_program

    def begin(self) -> None:
        """Record from here on: the program uses a card."""
        if self._record is None or not self._entries or self._is_foreign:
            return
        self._switch(stacks=True)
        self.is_on = True

    def stepped(self, number: int, allocations: int, seconds: float) -> None:
        """Decide by the last steps whether the next ones are recorded with stacks."""
        made, self._allocations = allocations - self._allocations, allocations
        if not self.is_on:
            return
        if number >= _ALWAYS_STEPS and seconds > 0 and made > 0:
            share = made * _STACK_SECONDS / seconds
            self._every = min(_RAREST, max(1, -int(-share // _MOST_SHARE)))
        self._looks += 1
        wanted = number < _ALWAYS_STEPS or self._looks % self._every == 0
        if wanted != self._with_stacks:
            self._switch(stacks=wanted)

    def end(self) -> None:
        """Record no more, and leave torch as it was."""
        if self.is_on:
            self.is_on = False
            self._record(enabled=None)
        if self._memory is not None and self._memory._record_memory_history is self._ours:
            self._memory._record_memory_history = self._record

    def _switch(self, *, stacks: bool) -> None:
        self._record(
            enabled="all",
            context="alloc" if stacks else None,
            stacks="python",
            max_entries=self._entries,
        )
        self._with_stacks = stacks

    def _step_aside(self) -> None:
        self._is_foreign = True
        if self.is_on:
            self.is_on = False
            self._record(enabled=None)

    def _take_up(self) -> None:
        self._is_foreign = False
        if self._agent.torch.cuda.is_initialized():
            self.begin()
