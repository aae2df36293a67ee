"""ZeRO-1, 2 and 3: DeepSpeed's own engine on the card, as rank 0 of N."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.record import replace
from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.run.strategy import Single
from oomdoctor.worker.sharding import group
from oomdoctor.worker.sharding.host import unwritten
from oomdoctor.worker.sharding.zero_config import STAGES, config_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from torch import nn

    from oomdoctor.model.job import Job, OptimizerSpec

FUSED = ("adamw", "adam")


class Zero(Single):
    """An engine of DeepSpeed, which casts, clips and steps by itself."""

    phases: Sequence[str] = ("evaluation", "save")
    casts = True
    scales = True

    def __init__(self, job: Job) -> None:
        """Become rank 0."""
        self._job = job
        self._stage = STAGES[job.sharding.kind]
        self._engine: Any = None
        self.offloads = job.optimizer is not None and job.optimizer.offload is not None
        self._spared = ExitStack()
        if self.offloads or job.sharding.offload_params:
            self._spared.enter_context(unwritten())
        self._linear = torch.nn.functional.linear  # stage 3 puts its own in the place, for good
        group.enter(job.sharding.ranks)
        self._deepspeed = _library()

    def close(self) -> None:
        """Leave the group, and give torch its own functions back."""
        self._spared.close()
        torch.nn.functional.linear = self._linear
        self._engine = None
        group.leave()

    def place(self, model: nn.Module, device: torch.device) -> nn.Module:  # noqa: ARG002 - the engine knows it
        """Partition the weights as they are loaded under stage 3; else the engine moves them."""
        if self._stage == STAGES["zero3"]:
            half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(self._job.dtype)
            config = config_of(self._job, model)
            self._deepspeed.zero.Init(module=model, config_dict_or_path=config, dtype=half)
        return model

    def spec(self, spec: OptimizerSpec) -> OptimizerSpec:
        """Return the optimizer as DeepSpeed makes it: Adam in one kernel."""
        return replace(spec, implementation="fused") if spec.name in FUSED else spec

    def optimizer(self, optimizer: Any, model: nn.Module) -> Any:
        """Start the engine, and return what steps it."""
        self._engine, _, _, _ = self._deepspeed.initialize(
            model=model, optimizer=optimizer, config=config_of(self._job, model)
        )
        return _Steps(self._engine)

    def wrap(self, model: nn.Module) -> Any:
        """Return the engine."""
        return model if self._engine is None else self._engine

    def held(self) -> Iterator[tuple[str, Iterable[torch.Tensor]]]:
        """Name the engine's weights (or this rank's part of them) and their fp32 copies."""
        weights = list(self._engine.module.parameters())
        yield "weights", [getattr(one, "ds_tensor", one) for one in weights]
        inner = self._engine.optimizer
        names = ("fp32_partitioned_groups_flat", "single_partition_of_fp32_groups")
        masters = (getattr(inner, name, None) or () for name in names)
        yield "optimizer", [one for several in masters for one in several]
        buffer = getattr(inner, "grad_partitions_flat_buffer", None)
        yield "gradient", [] if buffer is None else [buffer]

    def micro_step(self, model: Any, *, last: bool) -> AbstractContextManager[object]:
        """Tell the engine whether it is to exchange gradients."""
        return _bounded(model, last=last)

    def backward(self, loss: torch.Tensor) -> None:
        """Let the engine run autograd."""
        self._engine.backward(loss)

    def clip(self, weights: Sequence[torch.Tensor], limit: float) -> torch.Tensor:  # noqa: ARG002 - the engine's part
        """Leave it to the engine's step."""
        return torch.zeros(())


@contextmanager
def _bounded(engine: Any, *, last: bool) -> Iterator[None]:
    if hasattr(engine, "set_gradient_accumulation_boundary"):
        engine.set_gradient_accumulation_boundary(is_boundary=last)
    yield


class _Steps:
    """What a loop takes for the optimizer: steps the engine."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    @property
    def state(self) -> Any:
        """The states that the inner optimizer keeps."""
        inner = getattr(self._engine.optimizer, "optimizer", self._engine.optimizer)
        return inner.state

    def step(self) -> None:
        """Clip, step, gather the weights and forget the gradients."""
        self._engine.step()


def _library() -> Any:
    os.environ.setdefault("DS_ACCELERATOR", "cuda")
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    try:
        deepspeed = import_module("deepspeed")
    except ImportError as error:
        raise UnsupportedError(
            f"DeepSpeed cannot be imported: {error}", hint="pip install deepspeed"
        ) from error
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    return deepspeed
