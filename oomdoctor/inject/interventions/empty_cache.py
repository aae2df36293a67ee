"""Gives the allocator's free blocks back to the card after each optimizer step."""

from __future__ import annotations

from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Listen to the steps."""
    del arguments
    agent.after_step.append(lambda number: _empty(agent, number))


def _empty(agent: Any, number: int) -> None:
    if agent.torch.cuda.is_initialized():
        agent.torch.cuda.empty_cache()
        if number == 1:
            agent.tell("applied", hook="empty-cache")
    elif number == 1:
        agent.tell("note", hook="empty-cache", text="the process uses no card: nothing to empty")
