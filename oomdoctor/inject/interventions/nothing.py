"""Changes nothing: the control of an experiment, which must fail as the baseline did."""

from __future__ import annotations

from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Say that the control is in place."""
    del arguments
    agent.when_imported("torch", lambda _: agent.intervened("nothing"))
