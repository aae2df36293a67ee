"""A running average of the trained weights (EMA): one more copy, moved after every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

_RATE = 0.001


class Average:
    """Copies of weights that follow them slowly."""

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        """Copy the weights."""
        self.tensors = [weight.detach().clone() for weight in weights]

    @torch.no_grad()
    def update(self, weights: Sequence[torch.Tensor]) -> None:
        """Move every copy towards its weight, in place."""
        for copy, weight in zip(self.tensors, weights, strict=True):
            copy.lerp_(weight.detach(), _RATE)
