"""Collects reference cycles after each optimizer step, and says what they held."""

from __future__ import annotations

import gc
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Listen to the steps."""
    del arguments
    agent.after_step.append(lambda number: _collect(agent, number))


def _collect(agent: Any, number: int) -> None:
    before = agent.memory.live_bytes if agent.memory is not None else None
    found = gc.collect()
    freed = before - agent.memory.live_bytes if before is not None else None
    if number == 1 or freed:
        agent.tell("applied", hook="collect-garbage", objects=found, freed_bytes=freed)
