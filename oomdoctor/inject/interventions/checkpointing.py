"""Switches gradient checkpointing on in models that offer it: {"use_reentrant": 0}."""

from __future__ import annotations

from typing import Any

from .of_models import configs_of, once_per_model


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change each model before its first call."""
    reentrant = bool(arguments.get("use_reentrant"))

    def change(model: Any) -> str | None:
        enable = getattr(model, "gradient_checkpointing_enable", None)
        if enable is None:
            return "it does not offer gradient checkpointing"
        for config in configs_of(model):
            if hasattr(config, "use_cache"):
                config.use_cache = False
        enable({"use_reentrant": reentrant})
        if hasattr(model, "enable_input_require_grads"):
            model.enable_input_require_grads()
        return None

    once_per_model(agent, "checkpointing", change)
