"""Saving, resuming and merging: what they hold on the card beside the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins.adapter import is_adapted
from oomdoctor.worker.twins.optimizer import make_optimizer, state_tensors

if TYPE_CHECKING:
    from oomdoctor.worker.run.bench import Bench


def save(bench: Bench) -> None:
    """Copy weights and states to the host one by one, as safetensors and torch.save do."""
    bench.phase("save")
    for tensor in _saved(bench.model):
        tensor.detach().contiguous().cpu()
    if bench.optimizer is not None:
        for tensor in state_tensors(bench.optimizer):
            tensor.cpu()


def _saved(model: Any) -> list[torch.Tensor]:
    if is_adapted(model):
        from peft import get_peft_model_state_dict

        return list(get_peft_model_state_dict(model).values())
    return [one for one in model.state_dict().values() if isinstance(one, torch.Tensor)]


def resume(bench: Bench) -> None:
    """Read weights and states from the host into a loop that has no states yet."""
    bench.phase("resume")
    spec = bench.job.optimizer
    if spec is None or bench.optimizer is None:
        return
    states = _on_host(bench.optimizer.state_dict())
    bench.optimizer = None
    with torch.no_grad():
        for weight in bench.trained:
            weight.copy_(weight.detach().cpu())
    fresh = make_optimizer(spec, bench.model, grouped=bench.like_trainer)
    fresh.load_state_dict(states)
    bench.optimizer = bench.strategy.optimizer(fresh, bench.model)
    bench.observer.tag(state_tensors(fresh), "optimizer")


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {name: _on_host(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_on_host(one) for one in value]
    return value


def merge(bench: Bench) -> None:
    """Add the adapter to the weights of the base, layer after layer, as PEFT does."""
    bench.phase("merge")
    if not is_adapted(bench.model):
        raise UnsupportedError("only an adapter can be merged")
    bench.optimizer = None
    bench.kept.clear()
    with torch.no_grad():
        bench.model = bench.model.merge_and_unload()
    bench.tag_weights(bench.model)
