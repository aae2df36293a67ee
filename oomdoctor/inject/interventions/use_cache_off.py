"""Lets models of transformers keep no keys and values: `use_cache` off in forward and generate."""

from __future__ import annotations

from typing import Any

from .of_models import configs_of, once_per_model


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change each model before its first call."""
    del arguments

    def change(model: Any) -> str | None:
        configs = [one for one in configs_of(model) if hasattr(one, "use_cache")]
        for config in configs:
            config.use_cache = False
        generation = getattr(model, "generation_config", None)
        if generation is not None:
            generation.use_cache = False
        return None if configs or generation is not None else "it has no use_cache"

    once_per_model(agent, "use-cache-off", change)
