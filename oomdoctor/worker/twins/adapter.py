"""LoRA adapters, made by PEFT itself."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import NoTorchError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from oomdoctor.model.job import Job, LoraSpec

_TASKS = {
    "classification": "SEQ_CLS",
    "reward": "SEQ_CLS",
    "token-classification": "TOKEN_CLS",
    "seq2seq": "SEQ_2_SEQ_LM",
    "embedding": "FEATURE_EXTRACTION",
}
# tasks that PEFT has no class for: it wraps them plainly
_PLAIN = frozenset({"masked-lm", "image-classification"})

PATTERN = frozenset("*|\\^$+?(")
"""Marks of a regular expression; a name of modules has none of them."""
_SPREADS = ("DistributedDataParallel", "FullyShardedDataParallel", "DeepSpeedEngine")


def add_adapter(model: nn.Module, job: Job) -> nn.Module:
    """Return the model with the job's adapter, or as it is where the job has none."""
    if job.lora is None:
        return model
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise NoTorchError(f"PEFT is not there: {error}", hint="pip install peft") from error
    task = None if job.task in _PLAIN else _TASKS.get(job.task, "CAUSAL_LM")
    config = LoraConfig(task_type=task, **_settings(job.lora))
    try:
        with _unread_weights(model):
            wrapped: nn.Module = get_peft_model(model, config, autocast_adapter_dtype=job.lora.fp32)
    except (ValueError, TypeError) as error:
        raise UnsupportedError(
            f"PEFT cannot add this adapter: {str(error).partition(chr(10))[0]}",
            hint="name the modules with --lora-targets",
        ) from error
    return wrapped


@contextmanager
def _unread_weights(model: nn.Module) -> Iterator[None]:
    """Let DoRA not read weights on the host for their norms: it takes minutes, and no card."""
    if any(weight.device.type != "cpu" for weight in model.parameters()):
        yield
        return
    from peft.tuners.lora.dora import DoraLinearLayer

    plain = DoraLinearLayer.update_layer

    def update_layer(self: Any, *, base_layer: Any, **_settings: object) -> None:
        rows = base_layer.weight.new_ones(base_layer.out_features)
        self.weight = torch.nn.Parameter(rows, requires_grad=True)

    DoraLinearLayer.update_layer = update_layer
    try:
        yield
    finally:
        DoraLinearLayer.update_layer = plain


def _settings(lora: LoraSpec) -> dict[str, Any]:
    values: dict[str, Any] = {
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "use_dora": lora.dora,
        "use_rslora": lora.rslora,
    }
    if lora.targets:
        values["target_modules"] = _targets(lora.targets)
    if lora.modules_to_save:
        values["modules_to_save"] = list(lora.modules_to_save)
    if lora.layers:
        values["layers_to_transform"] = list(lora.layers)
    return values


def _targets(names: tuple[str, ...]) -> str | list[str]:
    """Return a text where it is "all-linear" or a pattern, else a list: PEFT tells them apart."""
    only = names[0] if len(names) == 1 else ""
    pattern = only == "all-linear" or any(mark in only for mark in PATTERN)
    return only if pattern else list(names)


def is_adapted(model: Any) -> bool:
    """Say whether PEFT wraps the model."""
    return hasattr(model, "peft_config") and hasattr(model, "merge_and_unload")


def unwrapped(model: Any) -> Any:
    """Return the model without what spreads it over cards."""
    while type(model).__name__ in _SPREADS:
        model = model.module
    return model


def base_of(model: Any) -> Any:
    """Return the model that DDP, FSDP or DeepSpeed and PEFT wrap, or the model itself."""
    model = unwrapped(model)
    return model.get_base_model() if hasattr(model, "get_base_model") else model
