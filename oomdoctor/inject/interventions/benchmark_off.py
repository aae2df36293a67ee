"""Keeps cuDNN from trying every algorithm, each with a workspace of its own."""

from __future__ import annotations

from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Switch it off before each call of an outermost module."""
    del arguments

    def before(module: Any, given: Any, named: Any) -> None:
        del module, given, named
        if agent.torch.backends.cudnn.benchmark:
            agent.torch.backends.cudnn.benchmark = False
            agent.intervened("benchmark-off")

    agent.before_root.append(before)
