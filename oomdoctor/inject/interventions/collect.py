"""Collects reference cycles after each optimizer step."""

from __future__ import annotations

import gc
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Listen to the steps."""
    del arguments
    agent.after_step.append(lambda _: _collect(agent))


def _collect(agent: Any) -> None:
    found = gc.collect()
    agent.intervened("collect", f"{found} objects in cycles")
