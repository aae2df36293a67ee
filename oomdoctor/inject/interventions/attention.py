"""Sets the attention implementation of models of transformers: {"implementation": "sdpa"}."""

from __future__ import annotations

from typing import Any

from .of_models import configs_of, once_per_model


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change each model before its first call."""
    wanted = str(arguments.get("implementation") or "sdpa")

    def change(model: Any) -> str | None:
        configs = configs_of(model)
        if not configs:
            return "it is no model of transformers"
        choose = getattr(model, "set_attn_implementation", None)
        if choose is not None:
            choose(wanted)
        else:
            for config in configs:
                config._attn_implementation = wanted
        return None

    once_per_model(agent, "attention", change)
