"""Runs modules in evaluation mode without gradients: {"where": "evaluate"}.

`where` may also name functions of the program's modules, `module.function`, comma-separated: they
run without gradients whatever mode their modules are in. Without names, a function of the program
whose own name speaks of evaluation is found by its frame: what it calls has no gradients, either.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_WORDS = ("eval", "valid", "predict", "test", "infer")
_DEEPEST = 12
_LIBRARIES = ("site-packages", "dist-packages")


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wrap outermost modules in evaluation mode, or the functions that are named."""
    where = str(arguments.get("where") or "evaluate")
    if where == "evaluate":
        agent.around_root.append(functools.partial(_around, agent))
        return
    for path in where.split(","):
        module, _, name = path.strip().rpartition(".")
        agent.when_imported(module, functools.partial(_wrap_function, agent, name))


def _around(agent: Any, module: Any) -> Any:
    if not agent.torch.is_grad_enabled() or (module.training and not _is_evaluating()):
        return None
    agent.intervened("no-grad", type(module).__name__)
    return agent.torch.no_grad()


def _is_evaluating() -> bool:
    """Say whether a function of the program that speaks of evaluation is being run."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None:
            return False
        name, path = frame.f_code.co_name.lower(), frame.f_code.co_filename
        if any(one in name for one in _WORDS) and not any(one in path for one in _LIBRARIES):
            return True
        frame = frame.f_back
    return False


def _wrap_function(agent: Any, name: str, module: Any) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def call(*given: Any, **named: Any) -> Any:
        agent.intervened("no-grad", f"{module.__name__}.{name}")
        with agent.torch.no_grad():
            return original(*given, **named)

    setattr(module, name, call)
