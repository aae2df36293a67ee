"""Lets a Trainer evaluate so many rows per batch: {"count": 1}."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for the Trainer."""
    count = int(arguments.get("count") or 1)
    agent.when_imported("transformers.trainer", functools.partial(_wrap, agent, count))


def _wrap(agent: Any, count: int, module: Any) -> None:
    original = module.Trainer.get_eval_dataloader

    @functools.wraps(original)
    def get_eval_dataloader(self: Any, *given: Any, **named: Any) -> Any:
        if self.args.per_device_eval_batch_size != count:
            before, self.args.per_device_eval_batch_size = (
                self.args.per_device_eval_batch_size,
                count,
            )
            agent.intervened("eval-rows", f"{before} -> {count}")
        return original(self, *given, **named)

    module.Trainer.get_eval_dataloader = get_eval_dataloader
