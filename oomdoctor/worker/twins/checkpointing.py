"""Activation checkpointing as a trainer switches it on, and activations that move to the host."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins.adapter import is_adapted

if TYPE_CHECKING:
    from collections.abc import Callable

_REENTRANT = {"reentrant": True, "non-reentrant": False}


def switch_on(model: Any, kind: str, *, offloads: bool = False) -> None:
    """Checkpoint every layer; `kind` is reentrant or non-reentrant.

    With `offloads`, what a layer keeps for its second run goes to the host.
    """
    options = {"use_reentrant": _REENTRANT[kind]}
    try:
        if hasattr(model, "activation_checkpointing_enable"):  # transformers 5.24
            model.activation_checkpointing_enable(activation_checkpointing_kwargs=options)
        else:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
    except (ValueError, AttributeError) as error:
        raise UnsupportedError(f"this model cannot checkpoint activations: {error}") from error
    if is_adapted(model):
        model.enable_input_require_grads()
    if offloads:
        for module in model.modules():
            plain = getattr(module, "_gradient_checkpointing_func", None)
            if plain is not None:
                module._gradient_checkpointing_func = partial(_offloading, plain)


def _offloading(checkpoint: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    with on_host():
        return checkpoint(*arguments, **named)


def on_host() -> Any:
    """Return a context in which what autograd saves goes to the host, and back when it is used."""
    return torch.autograd.graph.save_on_cpu(pin_memory=False)
