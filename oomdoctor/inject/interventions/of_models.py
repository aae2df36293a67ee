"""Shared by what changes a model: it is done once, when the model is called first."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def once_per_model(agent: Any, name: str, change: Callable[[Any], str | None]) -> None:
    """Call `change` with each outermost module before its first call; it says why not, if not."""
    seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def before(module: Any, arguments: Any, named: Any) -> None:
        del arguments, named
        inner = unwrapped(module)
        if inner in seen or next(inner.parameters(), None) is None:
            return
        seen.add(inner)
        problem = change(inner)
        if problem is None:
            agent.intervened(name, type(inner).__name__)
        else:
            agent.note(name, f"{type(inner).__name__}: {problem}")

    agent.before_root.insert(0, before)


def unwrapped(module: Any) -> Any:
    """Return the model inside wrappers (DDP, FSDP, DeepSpeed, compile): their `module`."""
    for _ in range(6):
        inner = getattr(module, "_orig_mod", None) or getattr(module, "module", None)
        if inner is None or not hasattr(inner, "parameters"):
            break
        module = inner
    return module


def configs_of(module: Any) -> list[Any]:
    """Return the configs of a model of transformers, with those of its parts; none of others."""
    config = getattr(module, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        return []
    parts = [getattr(config, name, None) for name in getattr(config, "sub_configs", {}) or {}]
    return [config, *(one for one in parts if one is not None)]
