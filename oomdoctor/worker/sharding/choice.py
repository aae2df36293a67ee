"""The strategy of a job that spreads over cards, or why it cannot be traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.worker.errors import UnsupportedError

if TYPE_CHECKING:
    from oomdoctor.model.job import Job
    from oomdoctor.worker.run.strategy import Strategy

ROWWISE = ("adamw", "adam", "sgd", "sgd-momentum", "adagrad", "rmsprop", "lion")
"""Optimizers of torch, or made of its plain operators: they step DTensors and flat weights."""
HOST_BYTES = 4 << 30
"""Bytes that offloaded partitions may take of this machine while they are traced."""


def sharded(job: Job) -> Strategy:
    """Return DDP, FSDP or ZeRO; UnsupportedError where the real code would refuse too."""
    kind = job.sharding.kind
    _refuse(job)
    if kind == "ddp":
        from oomdoctor.worker.sharding.replicas import Replicas

        return Replicas(job)
    if kind == "fsdp2":
        from oomdoctor.worker.sharding.full_shards import FullShards

        return FullShards(job)
    if kind == "fsdp1":
        from oomdoctor.worker.sharding.flat_shards import FlatShards

        return FlatShards(job)
    if kind in ("zero1", "zero2", "zero3"):
        from oomdoctor.worker.sharding.zero import Zero

        return Zero(job)
    raise UnsupportedError(f"{kind} is not traced")


def _refuse(job: Job) -> None:
    kind, optimizer = job.sharding.kind, job.optimizer
    shards = kind in ("fsdp1", "fsdp2", "zero3")
    if job.quant is not None and shards:
        raise UnsupportedError(f"a quantised base under {kind} is not traced")
    if job.reference == "separate" and kind != "ddp":
        raise UnsupportedError(f"a second model under {kind} is not traced")
    if kind.startswith("zero") and not job.trains:
        raise UnsupportedError("DeepSpeed is traced for training alone")
    if job.ema and kind != "ddp":
        raise UnsupportedError(f"an average of the weights under {kind} is not traced")
    if optimizer is None or kind == "ddp":
        return
    if optimizer.in_backward:
        raise UnsupportedError(f"steps within the backward pass under {kind} are not traced")
    if kind.startswith("fsdp") and optimizer.name not in ROWWISE:
        raise UnsupportedError(f"{optimizer.name} under {kind} is not traced")
    if kind.startswith("zero") and optimizer.name in ("galore", "muon"):
        raise UnsupportedError(f"{optimizer.name} under {kind} is not traced")
    offloads = optimizer.offload is not None or job.sharding.offload_params
    rows = (job.model.params or 0) * 4 // max(1, job.sharding.ranks)
    if offloads and job.lora is None and rows > HOST_BYTES:
        raise UnsupportedError("the partitions that are offloaded would fill this machine")
