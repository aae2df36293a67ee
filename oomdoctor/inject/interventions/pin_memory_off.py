"""Lets no DataLoader pin its batches in host memory."""

from __future__ import annotations

from typing import Any

from .loaders import when_made


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change each DataLoader as it is made."""
    del arguments

    def change(given: dict[str, Any]) -> None:
        if given.pop("pin_memory", False):
            agent.intervened("pin-memory-off")

    when_made(agent, change)
