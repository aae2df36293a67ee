"""Lets every DataLoader give at most so many rows per batch: {"count": 1}."""

from __future__ import annotations

from typing import Any

from .loaders import when_made


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change each DataLoader as it is made."""
    count = int(arguments.get("count") or 1)

    def change(given: dict[str, Any]) -> None:
        before = given.get("batch_size", 1)
        if given.get("batch_sampler") is not None:
            agent.note("rows", "a sampler of the program's own makes the batches")
        elif before is not None and before > count:
            given["batch_size"] = count
            agent.intervened("rows", f"{before} -> {count}")

    when_made(agent, change)
