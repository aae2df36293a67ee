"""What is on the host and takes nothing of the card: its tensors have no values in a trace."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LARGE = 1 << 20  # bytes
IN_PLACE = ("copy_", "mul_", "zero_", "fill_")


class HostSteps(torch.optim.Optimizer):
    """Holds weights, and leaves them as they are: what a step computes on the host is not asked."""

    def __init__(self, weights: Iterable[Any]) -> None:
        """Take the weights, or groups of them."""
        super().__init__(weights, {"lr": 1e-5, "betas": (0.9, 0.999), "weight_decay": 0.0})

    def step(self, closure: Any = None) -> None:
        """Do nothing."""


@contextmanager
def unwritten() -> Iterator[None]:
    """Leave large tensors of the host as they are made: pages that nobody wrote take no memory.

    DeepSpeed fills buffers of the size of the weights, copies one into another and scales them.
    """
    zeros, full = torch.zeros, torch.full
    torch.zeros, torch.full = _made(zeros), _made(full)
    for name in IN_PLACE:
        setattr(torch.Tensor, name, _changed(getattr(torch.Tensor, name)))
    try:
        yield
    finally:
        torch.zeros, torch.full = zeros, full
        for name in IN_PLACE:
            delattr(torch.Tensor, name)  # torch's own stands in the class below


def _made(make: Callable[..., torch.Tensor]) -> Any:
    """Make a tensor of the host without values where it is large."""

    def made(*arguments: Any, **named: Any) -> torch.Tensor:
        if torch.device(named.get("device") or torch.get_default_device()).type != "cpu":
            return make(*arguments, **named)
        told = {name: value for name, value in named.items() if name != "pin_memory"}
        shape = make(*arguments, **{**told, "device": "meta"})
        if shape.nbytes < LARGE:
            return make(*arguments, **named)
        return torch.empty(shape.shape, dtype=shape.dtype, device="cpu")

    return made


def _changed(change: Callable[..., torch.Tensor]) -> Any:
    """Leave what is large and on the host as it is, unless something comes from the card."""

    def changed(self: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        other = arguments[0] if arguments else self
        on_host = not isinstance(other, torch.Tensor) or other.device.type == "cpu"
        if self.device.type == "cpu" and self.nbytes >= LARGE and on_host:
            return self
        return change(self, *arguments, **named)

    return changed
