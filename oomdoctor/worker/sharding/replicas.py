"""DistributedDataParallel: whole models, gradients averaged in buckets by torch's own reducer."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.run.strategy import Single
from oomdoctor.worker.sharding import group

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from torch import nn

    from oomdoctor.model.job import Job

MIB = 1 << 20
BUCKET_MIB = 25  # DDP's bucket_cap_mb; the first bucket is 1 MiB


class Replicas(Single):
    """DDP over the ranks of a job."""

    phases: Sequence[str] = ("evaluation", "generation", "save", "merge", "resume")

    def __init__(self, job: Job) -> None:
        """Become rank 0."""
        self._spec = job.sharding
        group.enter(self._spec.ranks)

    def close(self) -> None:
        """Leave the group."""
        group.leave()

    def wrap(self, model: nn.Module) -> Any:
        """Let DDP make its buckets; they are averaged without being sent."""
        if not any(weight.requires_grad for weight in model.parameters()):
            return model
        bucket = self._spec.bucket_bytes
        cards = next(model.parameters()).device.type == "cuda"
        wrapped: Any = torch.nn.parallel.DistributedDataParallel(
            model,
            device_ids=[0] if cards else None,
            bucket_cap_mb=BUCKET_MIB if bucket is None else bucket / MIB,
            gradient_as_bucket_view=self._spec.bucket_views,
        )
        wrapped.register_comm_hook(self._spec.ranks, _hook())
        # both time CUDA events, which no fake card has
        wrapped.logger = _Quiet()
        wrapped.reducer = _Untimed(wrapped.reducer)
        return wrapped

    def micro_step(self, model: Any, *, last: bool) -> AbstractContextManager[object]:
        """Let gradients pile up until the last micro-step."""
        quiet: AbstractContextManager[object] = nullcontext() if last else model.no_sync()
        return quiet


def _hook() -> Any:
    """Return the hook without annotations, which DDP would compare with its own types."""
    return lambda ranks, bucket: averaged(bucket, ranks)


def averaged(bucket: Any, ranks: int) -> torch.futures.Future[torch.Tensor]:
    """Divide a bucket in place, as the reducer does before it sends it, and call it done."""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer().div_(ranks))
    return done


class _Quiet:
    """Stands for DDP's logger."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments, **_named: None


class _Untimed:
    """A reducer that counts no iterations: a build for CUDA times the first ten of them."""

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer

    def prepare_for_forward(self) -> None:
        """Count nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reducer, name)
