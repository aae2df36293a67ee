"""Lets models of transformers have 16 bits a weight: {"dtype": "bfloat16"}.

A model that is loaded is loaded so. One that the program makes itself is narrowed before its first
call, which leaves the peak of its making as it is.
"""

from __future__ import annotations

import functools
from typing import Any

from .of_models import configs_of, once_per_model

NAME = "load-16-bit"


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for the models of transformers."""
    dtype = str(arguments.get("dtype") or "bfloat16")
    agent.when_imported("transformers.modeling_utils", functools.partial(_wrap, agent, dtype))
    once_per_model(agent, NAME, functools.partial(_narrow, agent, dtype))


def _wrap(agent: Any, dtype: str, module: Any) -> None:
    for name in ("from_pretrained", "_from_config"):
        original = getattr(module.PreTrainedModel, name).__func__
        setattr(module.PreTrainedModel, name, classmethod(_loading(agent, dtype, original)))


def _loading(agent: Any, dtype: str, original: Any) -> Any:
    @functools.wraps(original)
    def load(cls: Any, *given: Any, **named: Any) -> Any:
        key = "torch_dtype" if "torch_dtype" in named else "dtype"
        agent.intervened(NAME, f"{cls.__name__}: {dtype}")
        return original(cls, *given, **{**named, key: getattr(agent.torch, dtype)})

    return load


def _narrow(agent: Any, dtype: str, model: Any) -> str | None:
    if not configs_of(model):
        return "it is no model of transformers"
    if all(one.dtype != agent.torch.float32 for one in model.parameters()):
        return "it has no weights of 32 bits by its first call"
    model.to(getattr(agent.torch, dtype))
    return None
