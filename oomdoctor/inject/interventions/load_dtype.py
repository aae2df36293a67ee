"""Loads models of transformers in a narrower type: {"dtype": "bfloat16"}."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for the models and for the classes that choose one by a config."""
    dtype = str(arguments.get("dtype") or "bfloat16")
    agent.when_imported("transformers.modeling_utils", functools.partial(_wrap, agent, dtype))


def _wrap(agent: Any, dtype: str, module: Any) -> None:
    for name in ("from_pretrained", "_from_config"):
        original = getattr(module.PreTrainedModel, name).__func__
        setattr(module.PreTrainedModel, name, classmethod(_loading(agent, dtype, original)))


def _loading(agent: Any, dtype: str, original: Any) -> Any:
    @functools.wraps(original)
    def load(cls: Any, *given: Any, **named: Any) -> Any:
        key = "torch_dtype" if "torch_dtype" in named else "dtype"
        agent.tell("applied", hook="load-dtype", text=f"{cls.__name__}: {dtype}")
        return original(cls, *given, **{**named, key: getattr(agent.torch, dtype)})

    return load
