"""FSDP2 (`fully_shard`): each weight a DTensor of which a rank has its rows, gathered by groups."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.run.strategy import Single
from oomdoctor.worker.sharding import group
from oomdoctor.worker.sharding.layers import ends_of, layers_of
from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from torch import nn

    from oomdoctor.model.job import Job

CARVED = ("transformers", "trl", "torchtitan", "axolotl", "llamafactory")
"""Training loops that gather the embedding, and the norm with the output layer, by themselves."""


class FullShards(Single):
    """FSDP2 over the ranks of a job, as accelerate prepares a model, or as plain scripts do."""

    phases: Sequence[str] = ("evaluation", "save")

    def __init__(self, job: Job) -> None:
        """Become rank 0."""
        self._job = job
        self.offloads = job.sharding.offload_params
        self.casts = job.framework not in ("transformers", "trl")
        group.enter(job.sharding.ranks)

    def close(self) -> None:
        """Leave the group."""
        group.leave()

    def place(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Shard group by group; the weights come to the card one group after the other."""
        job = self._job
        if job.amp is not None and not self.casts:
            widen(model)
        try:
            self._shard(model, device)
        except (ImportError, TypeError) as error:
            raise UnsupportedError(f"this torch has no FSDP2 as it is used now: {error}") from error
        return model

    def _shard(self, model: nn.Module, device: torch.device) -> None:
        from torch.distributed.fsdp import fully_shard

        job = self._job
        given = {"mesh": group.mesh_of(device, job.sharding.ranks), "mp_policy": self._precision()}
        if self.offloads:
            from torch.distributed.fsdp import CPUOffloadPolicy

            given["offload_policy"] = CPUOffloadPolicy(pin_memory=False)  # is the host's alone
        layers = layers_of(model, job)
        for layer in layers:
            fully_shard(layer, **given, reshard_after_forward=job.sharding.reshard)
        if layers and job.framework in CARVED:
            first, tail = ends_of(model)
            if first is not None:
                fully_shard(first, **given, reshard_after_forward=job.sharding.reshard)
            if tail:
                fully_shard(tail, **given, reshard_after_forward=False)
        fully_shard(model, **given)

    def _precision(self) -> Any:
        from torch.distributed.fsdp import MixedPrecisionPolicy

        if self._job.amp is None:
            return MixedPrecisionPolicy()
        half = dtype_of(self._job.amp)
        if self.casts:
            return MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)
        return MixedPrecisionPolicy(param_dtype=half, reduce_dtype=half, output_dtype=half)

    def micro_step(self, model: Any, *, last: bool) -> AbstractContextManager[object]:
        """Keep whole gradients until the last micro-step."""
        return _syncing(model, last=last)


@contextmanager
def _syncing(model: Any, *, last: bool) -> Iterator[None]:
    model.set_requires_gradient_sync(last)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def widen(model: nn.Module) -> None:
    """Cast the weights that are trained to fp32, as accelerate does under mixed precision."""
    for weight in model.parameters():
        if weight.requires_grad and weight.dtype != torch.float32:
            weight.data = weight.data.to(torch.float32)
