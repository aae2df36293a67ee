"""Counts optimizer steps, their seconds and tokens, and ends the trial after as many as are asked.

A step counts when an optimizer has updated: passes that only accumulate do not, nor does a step
that a gradient scaler skips. Of several optimizers (or one per parameter) the first to reach a
number makes the step; the trial ends when all that took part in the first step have reached it.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any

from .ending import end_now
from .phases import EVALUATE, LOAD, SAVE, TRAIN

if TYPE_CHECKING:
    from typing import TypeAlias

    from .agent import Agent
    from .phases import Phases

Library: TypeAlias = Any
_PATIENCE = 10  # times the steps asked for, until the program evaluates or saves of its own accord
_LEAST_PATIENCE = 20


class Steps:
    """The steps of a process, and what the trial still waits for."""

    def __init__(self, agent: Agent, phases: Phases) -> None:
        """Count nothing yet."""
        self.number = 0
        self.driven = False  # a trainer's callback asks for evaluation and save, and ends
        self.engine = False  # an engine counts its own steps: its optimizers step in parts
        self._agent = agent
        self._phases = phases
        self._counts: weakref.WeakKeyDictionary[Library, int] = weakref.WeakKeyDictionary()
        self._group = 1
        self._train_mode = False
        self._tokens = 0
        self._last = 0.0

    def optimizer_stepped(self, optimizer: Library, *_: Library) -> None:
        """Count a step of an optimizer, as the hook of torch tells it."""
        if self.engine:
            return
        count = self._counts.get(optimizer, 0) + 1
        if self.number == 1 and count > 1:
            self._group = len(self._counts)
        self._counts[optimizer] = count
        if count > self.number:
            self.stepped()
        self._end_if_done()

    def engine_stepped(self) -> None:
        """Count a step of an engine."""
        self.stepped()
        self._end_if_done()

    def saw_root(self, module: Library, arguments: Library, named: Library) -> None:
        """Follow the phase and the tokens by the call of an outermost module."""
        if next(module.parameters(), None) is None:
            return  # a loss or a metric: it says nothing of training or evaluation
        self._train_mode = self._train_mode or module.training
        # a model that was never put into training mode trains, too, if somebody wants gradients
        if module.training or (not self._train_mode and self._agent.torch.is_grad_enabled()):
            self._end_if_fulfilled()
            self._phases.enter(TRAIN)
            self._tokens += tokens_of(self._agent.torch, arguments, named)
        else:
            self._phases.enter(EVALUATE)

    def stepped(self) -> None:
        """Tell a step with its seconds, its tokens and the peaks of its phase so far."""
        self._agent.meter.settle()
        now = time.perf_counter()
        self.number += 1
        self._phases.look()
        seconds = round(now - self._last, 6) if self._last else None
        self._agent.tell(
            "step",
            number=self.number,
            seconds=seconds,
            tokens=self._tokens or None,
            held_bytes=self._agent.meter.held_bytes(),
            **self._phases.figures(),
        )
        self._last, self._tokens = now, 0
        for listener in self._agent.after_step:
            self._agent.guarded(listener)(self.number)

    def unmet(self) -> list[str]:
        """Name what the trial asks for and has not seen: evaluation, save."""
        settings = self._agent.settings
        seen = {*self._phases.over, self._phases.current}
        wanted = [
            name
            for name, asked in ((EVALUATE, settings.evaluates), (SAVE, settings.saves))
            if asked
        ]
        return [name for name in wanted if name not in seen]

    def end(self) -> None:
        """Tell the end of the trial and end the process."""
        if not self._agent.is_ours():
            return
        self._agent.ending = True
        missing = self.unmet()
        self._agent.guarded(self._phases.close)()
        self._agent.tell("done", number=self.number, unmet=missing)
        end_now(self._agent)

    def _reached(self) -> bool:
        wanted = self._agent.settings.steps
        if wanted is None or self.number < wanted:
            return False
        if self.engine or self._group == 1:
            return True
        return sum(count >= wanted for count in self._counts.values()) >= self._group

    def _end_if_done(self) -> None:
        """End after the last step; wait for what the program evaluates and saves, but not long."""
        if self.driven or not self._reached():
            return
        wanted = self._agent.settings.steps or 0
        patience = max(_LEAST_PATIENCE, _PATIENCE * wanted)
        if not self.unmet() or self.number >= wanted + patience:
            self.end()

    def _end_if_fulfilled(self) -> None:
        """End when training goes on after what was waited for."""
        if self._phases.current in (EVALUATE, SAVE) or self._phases.over - {LOAD, TRAIN}:
            self._end_if_done()


def tokens_of(torch: Library, arguments: Library, named: Library) -> int:
    """Return the tokens of a call: the elements of `input_ids`, else of a first [rows, length]."""
    ids = ids_of(torch, arguments, named)
    return 0 if ids is None else int(ids.numel())


def ids_of(torch: Library, arguments: Library, named: Library) -> Library | None:
    """Return the token ids that a model was called with."""
    given = named.get("input_ids")
    if given is None and arguments:
        first = arguments[0]
        # asked of its class: a proxy that a tracer hands around answers to every name
        given = first.get("input_ids") if hasattr(type(first), "get") else first
    if not isinstance(given, torch.Tensor) or given.is_floating_point() or given.dim() > 2:
        return None
    return given
