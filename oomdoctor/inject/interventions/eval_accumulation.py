"""Lets a Trainer move predictions to the host every so many batches: {"steps": 1}."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for the Trainer."""
    every = int(arguments.get("steps") or 1)
    agent.when_imported("transformers.trainer", functools.partial(_wrap, agent, every))


def _wrap(agent: Any, every: int, module: Any) -> None:
    original = module.Trainer.evaluation_loop

    @functools.wraps(original)
    def evaluation_loop(self: Any, *given: Any, **named: Any) -> Any:
        if self.args.eval_accumulation_steps != every:
            self.args.eval_accumulation_steps = every
            agent.intervened("eval-accumulation")
        return original(self, *given, **named)

    module.Trainer.evaluation_loop = evaluation_loop
