"""Runs what the program compiles as it is written."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    del arguments
    agent.when_imported("torch", functools.partial(_wrap, agent))


def _wrap(agent: Any, torch: Any) -> None:
    compiled = torch.nn.Module.compile

    def compile_nothing(model: Any = None, **named: Any) -> Any:
        del named
        agent.intervened("no-compile")
        return (lambda one: one) if model is None else model

    @functools.wraps(compiled)
    def leave(self: Any, *given: Any, **named: Any) -> None:
        del self, given, named
        agent.intervened("no-compile")

    torch.compile = compile_nothing
    torch.nn.Module.compile = leave
