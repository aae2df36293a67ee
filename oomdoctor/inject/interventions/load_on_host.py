"""Lets `torch.load` put what it reads on the host, wherever it was saved from."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    del arguments
    agent.when_imported("torch", functools.partial(_wrap, agent))


def _wrap(agent: Any, torch: Any) -> None:
    original = torch.load

    @functools.wraps(original)
    def load(file: Any, map_location: Any = None, *given: Any, **named: Any) -> Any:
        if map_location is None or str(map_location) != "cpu":
            agent.intervened("load-on-host")
        return original(file, "cpu", *given, **named)

    torch.load = load
