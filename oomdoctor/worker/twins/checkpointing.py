"""Activation checkpointing as a trainer switches it on."""

from __future__ import annotations

from typing import Any

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins.adapter import is_adapted

_REENTRANT = {"reentrant": True, "non-reentrant": False}


def switch_on(model: Any, kind: str | None) -> None:
    """Checkpoint every layer; `kind` is reentrant, non-reentrant or None: keep all activations."""
    if kind is None:
        return
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
