"""Sets the number of worker processes of every DataLoader: {"count": 0}."""

from __future__ import annotations

from typing import Any

from .loaders import when_made

_OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change each DataLoader as it is made."""
    count = int(arguments.get("count") or 0)

    def change(given: dict[str, Any]) -> None:
        before = given.get("num_workers") or 0
        if before == count:
            return
        given["num_workers"] = count
        for name in _OF_WORKERS if count == 0 else ():
            given.pop(name, None)
        agent.intervened("workers", f"{before} -> {count}")

    when_made(agent, change)
