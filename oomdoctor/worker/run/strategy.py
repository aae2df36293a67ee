"""How a job spreads over cards, as seen from one of them; on a single card: not at all."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import torch

from oomdoctor.worker.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from torch import nn

    from oomdoctor.model.job import Job, OptimizerSpec


class Strategy(Protocol):
    """What a training loop leaves to DDP, FSDP or ZeRO.

    `phases` are those after training that can be run under it. `casts` says that it casts weights
    itself, so that no autocast is needed; `scales`, that it scales fp16 losses itself; `offloads`,
    that the optimizer's states are on the host.
    """

    phases: Sequence[str]
    casts: bool
    scales: bool
    offloads: bool

    def close(self) -> None:
        """End what it began."""

    def spec(self, spec: OptimizerSpec) -> OptimizerSpec:
        """Return the optimizer as the strategy wants it."""

    def held(self) -> Iterable[tuple[str, Iterable[torch.Tensor]]]:
        """Name tensors that it made, with their categories."""

    def place(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Return the model on the device: moved, sharded or gathered as the strategy does."""

    def wrap(self, model: nn.Module) -> Any:
        """Return what the loop calls in the place of the model."""

    def optimizer(self, optimizer: Any, model: nn.Module) -> Any:
        """Return the optimizer that the loop steps."""

    def micro_step(self, model: Any, *, last: bool) -> AbstractContextManager[object]:
        """Return the context of one forward and backward; the last one exchanges gradients."""

    def backward(self, loss: torch.Tensor) -> None:
        """Compute the gradients."""

    def clip(self, weights: Sequence[torch.Tensor], limit: float) -> torch.Tensor:
        """Scale the gradients to the limit and return their norm."""


class Single:
    """One card, nothing exchanged."""

    phases: Sequence[str] = ("evaluation", "generation", "save", "merge", "resume")
    casts = False
    scales = False
    offloads = False

    def close(self) -> None:
        """End nothing."""

    def spec(self, spec: OptimizerSpec) -> OptimizerSpec:
        """Return the optimizer as it is."""
        return spec

    def held(self) -> Iterable[tuple[str, Iterable[torch.Tensor]]]:
        """Name nothing."""
        return ()

    def place(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Move the model."""
        return model.to(device)

    def wrap(self, model: nn.Module) -> Any:
        """Return the model itself."""
        return model

    def optimizer(self, optimizer: Any, model: nn.Module) -> Any:  # noqa: ARG002 - the protocol's
        """Return the optimizer itself."""
        return optimizer

    def micro_step(self, model: Any, *, last: bool) -> AbstractContextManager[object]:  # noqa: ARG002 - same
        """Do nothing around a micro-step."""
        return nullcontext()

    def backward(self, loss: torch.Tensor) -> None:
        """Run autograd."""
        loss.backward()

    def clip(self, weights: Sequence[torch.Tensor], limit: float) -> torch.Tensor:
        """Clip as torch does."""
        return torch.nn.utils.clip_grad_norm_(weights, limit)


def strategy_of(job: Job) -> Strategy:
    """Return the strategy of a job; UnsupportedError where it cannot be traced."""
    sharding = job.sharding
    if max(sharding.tensor, sharding.pipeline, sharding.context) > 1:
        raise UnsupportedError("tensor, pipeline and context parallel jobs are not traced")
    if not sharding.kind or (sharding.kind == "ddp" and sharding.ranks == 1):
        return Single()
    from oomdoctor.worker.sharding.choice import sharded

    return sharded(job)
