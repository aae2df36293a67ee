"""FSDP1: the weights of a group in one flat tensor, of which a rank has its part."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.run.strategy import Single
from oomdoctor.worker.sharding import group
from oomdoctor.worker.sharding.layers import layers_of
from oomdoctor.worker.twins.adapter import is_adapted
from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from torch import nn

    from oomdoctor.model.job import Job


class FlatShards(Single):
    """FSDP1 over the ranks of a job, as accelerate prepares a model, or as plain scripts do."""

    phases: Sequence[str] = ("evaluation", "save")

    def __init__(self, job: Job) -> None:
        """Become rank 0."""
        self._job = job
        self.offloads = job.sharding.offload_params
        self._like_trainer = job.framework in ("transformers", "trl")
        self.casts = not self._like_trainer
        self._model: Any = None
        group.enter(job.sharding.ranks)

    def close(self) -> None:
        """Leave the group."""
        self._model = None
        group.leave()

    def place(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Flatten and shard group by group."""
        from torch.distributed import fsdp

        job = self._job
        self._model = fsdp.FullyShardedDataParallel(
            model,
            sharding_strategy=_strategy(job),
            cpu_offload=fsdp.CPUOffload(offload_params=self.offloads),
            auto_wrap_policy=self._policy(model),
            mixed_precision=self._precision(),
            backward_prefetch=fsdp.BackwardPrefetch.BACKWARD_PRE if self._prefetches() else None,
            device_id=device if device.type == "cuda" else None,
            use_orig_params=self._like_trainer or is_adapted(model),
            sync_module_states=False,
        )
        if job.amp is not None and self._like_trainer:
            _widen(self._model)
        return self._model

    def _prefetches(self) -> bool:
        """Say whether weights are gathered ahead in backward: accelerate does not, torch does."""
        said = self._job.sharding.prefetch
        return not self._like_trainer if said is None else said

    def _policy(self, model: nn.Module) -> Any:
        from torch.distributed.fsdp import wrap

        kinds = {type(layer) for layer in layers_of(model, self._job)}
        if not kinds:
            return None
        whole = functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls=kinds)
        if not is_adapted(model):
            return whole
        alone = functools.partial(wrap.lambda_auto_wrap_policy, lambda_fn=_trained_leaf)
        return functools.partial(wrap._or_policy, policies=[alone, whole])

    def _precision(self) -> Any:
        from torch.distributed.fsdp import MixedPrecision

        if self._job.amp is None:
            return None
        half = dtype_of(self._job.amp)
        reduced = half if self._like_trainer else torch.float32
        return MixedPrecision(param_dtype=half, reduce_dtype=reduced, buffer_dtype=half)

    def micro_step(self, model: Any, *, last: bool) -> AbstractContextManager[object]:
        """Keep whole gradients until the last micro-step."""
        quiet: AbstractContextManager[object] = nullcontext() if last else model.no_sync()
        return quiet

    def clip(self, weights: Sequence[torch.Tensor], limit: float) -> torch.Tensor:  # noqa: ARG002 - FSDP knows them
        """Clip by the norm over all ranks."""
        norm: torch.Tensor = self._model.clip_grad_norm_(limit)
        return norm


def _strategy(job: Job) -> Any:
    from torch.distributed.fsdp import ShardingStrategy

    return ShardingStrategy.FULL_SHARD if job.sharding.reshard else ShardingStrategy.SHARD_GRAD_OP


def _trained_leaf(module: nn.Module) -> bool:
    """Say whether PEFT's policy wraps a module by itself."""
    weight = getattr(module, "weight", None)
    return not list(module.named_children()) and weight is not None and bool(weight.requires_grad)


def _widen(model: Any) -> None:
    """Cast flat weights to fp32, as accelerate does under mixed precision."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    for module in FullyShardedDataParallel.fsdp_modules(model):
        flat = module._flat_param if module._has_params else None
        if flat is not None and flat.requires_grad and flat.dtype != torch.float32:
            flat.data = flat.data.to(torch.float32)
            module._handle._orig_param_dtype = torch.float32
