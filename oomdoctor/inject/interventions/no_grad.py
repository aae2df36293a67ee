"""Runs modules in evaluation mode without gradients: {"where": "evaluate"}.

`where` may also name functions of the program's modules, `module.function`, comma-separated: they
run without gradients whatever mode their modules are in.
"""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wrap outermost modules in evaluation mode, or the functions that are named."""
    where = str(arguments.get("where") or "evaluate")
    if where == "evaluate":
        agent.around_root.append(functools.partial(_around, agent, []))
        return
    for path in where.split(","):
        module, _, name = path.strip().rpartition(".")
        agent.when_imported(module, functools.partial(_wrap_function, agent, name))


def _around(agent: Any, told: list[bool], module: Any) -> Any:
    if module.training or not agent.torch.is_grad_enabled():
        return None
    if not told:
        told.append(True)
        agent.tell("applied", hook="no-grad", text=f"{type(module).__name__} in evaluation mode")
    return agent.torch.no_grad()


def _wrap_function(agent: Any, name: str, module: Any) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def call(*given: Any, **named: Any) -> Any:
        with agent.torch.no_grad():
            return original(*given, **named)

    setattr(module, name, call)
    agent.tell("applied", hook="no-grad", text=f"{module.__name__}.{name}")
