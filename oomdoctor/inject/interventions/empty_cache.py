"""Gives the allocator's free blocks back to the card after each optimizer step."""

from __future__ import annotations

from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Listen to the steps."""
    del arguments
    agent.after_step.append(lambda _: _empty(agent))


def _empty(agent: Any) -> None:
    if agent.torch.cuda.is_initialized():
        agent.torch.cuda.empty_cache()
        agent.intervened("empty-cache")
    else:
        agent.note("empty-cache", "the process uses no card: there is nothing to empty")
