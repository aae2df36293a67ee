"""Autocast around a model, and the scaler of fp16 gradients, as accelerate sets them up."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.worker.run.bench import Bench

_HALF = (torch.float16, torch.bfloat16)


def cast_automatically(bench: Bench) -> None:
    """Run the model's forward under autocast; Trainer then returns every output in fp32."""
    if bench.job.amp is None or bench.strategy.casts:
        return
    dtype = dtype_of(bench.job.amp)
    model = bench.model
    plain: Callable[..., Any] = model.forward
    kind = bench.device.type
    widens = bench.like_trainer and bench.job.trains

    @wraps(plain)  # `generate` looks at the signature
    def forward(*arguments: Any, **named: Any) -> Any:
        with torch.autocast(kind, dtype=dtype):
            outputs = plain(*arguments, **named)
        return _widened(outputs) if widens else outputs

    model.forward = forward


def _widened(value: Any) -> Any:
    """Return outputs with 16-bit tensors in fp32 (accelerate's convert_outputs_to_fp32)."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in _HALF else value
    if isinstance(value, dict):
        return type(value)({name: _widened(one) for name, one in value.items()})
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_widened(one) for one in value)
    return value


def make_scaler(bench: Bench) -> Any:
    """Return the GradScaler of the job, or None."""
    if not bench.job.scaler or bench.strategy.scales:
        return None
    bench.observer.assume("no gradient overflows: the scaler lets every step be taken")
    return _Scaler(bench.device.type)


class _Scaler(torch.amp.GradScaler):
    """A scaler that takes every step; whether one is skipped hangs on values."""

    def _maybe_opt_step(self, optimizer: Any, _state: Any, *arguments: Any, **named: Any) -> Any:
        return optimizer.step(*arguments, **named)
