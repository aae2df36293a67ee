"""An optimizer whose states are on the host: it takes nothing of the card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable


class HostSteps(torch.optim.Optimizer):
    """Holds weights, and leaves them as they are: what a step computes on the host is not asked."""

    def __init__(self, weights: Iterable[Any]) -> None:
        """Take the weights, or groups of them."""
        super().__init__(weights, {"lr": 1e-5, "betas": (0.9, 0.999), "weight_decay": 0.0})

    def step(self, closure: Any = None) -> None:
        """Do nothing."""
