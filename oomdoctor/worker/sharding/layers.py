"""Which modules are gathered as one: the layers that a model must not split, and its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.twins.adapter import base_of

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job

LEAST_LAYERS = 2


def layers_of(model: nn.Module, job: Job) -> list[nn.Module]:
    """Return the modules that are wrapped one by one, in the order of the model; perhaps none."""
    if job.sharding.wrap == "whole":
        return []
    names = set(getattr(base_of(model), "_no_split_modules", None) or ())
    if names:
        return [one for one in model.modules() if type(one).__name__ in names]
    return _longest_list(model)


def _longest_list(model: nn.Module) -> list[nn.Module]:
    """Return the children of the longest list of modules: a model's own words are missing."""
    lists = [one for one in model.modules() if isinstance(one, (torch.nn.ModuleList))]
    longest = max(lists, key=len, default=None)
    return list(longest) if longest is not None and len(longest) >= LEAST_LAYERS else []


def ends_of(model: nn.Module) -> tuple[nn.Module | None, list[nn.Module]]:
    """Return what accelerate gathers by itself: the input embedding, and norm with output layer.

    Where both share their weight, all three are one unit (`fsdp2_prepare_model`, accelerate 1.15).
    """
    base: Any = base_of(model)
    first = _of(base, "get_input_embeddings")
    last = _of(base, "get_output_embeddings")
    weight = getattr(first, "weight", None)
    tied = weight is not None and weight is getattr(last, "weight", None)
    tail = [_final_norm(base), *([first] if tied else []), last]
    found = [one for one in tail if one is not None]
    return (None if tied else first), found


def _of(model: Any, name: str) -> Any:
    get = getattr(model, name, None)
    try:
        return None if get is None else get()
    except NotImplementedError:
        return None


def _final_norm(model: Any) -> Any:
    prefix = getattr(model, "base_model_prefix", "")
    inner = getattr(model, prefix, None) if prefix else model
    if not isinstance(inner, torch.nn.Module):
        return None
    norms = [one for one in inner.children() if "Norm" in type(one).__name__]
    return norms[-1] if norms else None
