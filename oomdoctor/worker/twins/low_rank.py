"""GaLore: AdamW whose states are those of a projected gradient, as galore_torch 1.0 allocates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import nn

_HEADS = ("embed", "lm_head", "wte", "wpe", "score", "classifier")


def hidden_matrices(model: nn.Module) -> list[torch.Tensor]:
    """Return the trainable weights of linear layers between embedding and output."""
    return [
        module.weight
        for path, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and module.weight.requires_grad
        and module.weight.dim() == 2
        and not any(head in path for head in _HEADS)
    ]


class GaloreAdamW(torch.optim.Optimizer):
    """AdamW weight after weight, with the gradients of matrices projected to a lower rank."""

    def __init__(self, others: list[Any], matrices: list[Any], *, rate: float, rank: int) -> None:
        """Take weights that are left as they are, and matrices to be projected."""
        groups: list[dict[str, Any]] = [
            {"params": others, "rank": None},
            {"params": matrices, "rank": rank},
        ]
        super().__init__([one for one in groups if one["params"]], {"lr": rate, "rank": None})

    @torch.no_grad()
    def step(self) -> None:
        """Project, average, divide and project back, each weight on its own."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group["rank"], group["lr"])

    def _move(self, weight: torch.Tensor, rank: int | None, rate: float) -> None:
        state = self.state[weight]
        gradient = weight.grad
        if rank is not None:
            if "projection" not in state:
                state["projection"] = _projection(gradient, rank)
            gradient = _project(gradient, state["projection"])
        if "exp_avg" not in state:
            state["exp_avg"] = torch.zeros_like(gradient)
            state["exp_avg_sq"] = torch.zeros_like(gradient)
        average, squares = state["exp_avg"], state["exp_avg_sq"]
        average.mul_(0.9).add_(gradient, alpha=0.1)
        squares.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        divisor = squares.sqrt().add_(1e-6)
        update = average / divisor
        if rank is not None:
            update = _project_back(update, state["projection"])
        weight.add_(update, alpha=-rate)


def _is_tall(gradient: torch.Tensor) -> bool:
    return gradient.shape[0] >= gradient.shape[1]


def _projection(gradient: torch.Tensor, rank: int) -> torch.Tensor:
    """Return the first singular vectors of the shorter side."""
    matrix = gradient.float() if gradient.dtype != torch.float32 else gradient
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    if _is_tall(gradient):
        _unused = left[:, :rank] @ torch.diag(values[:rank])
        return right[:rank, :].to(gradient.dtype)
    _unused = torch.diag(values[:rank]) @ right[:rank, :]
    return left[:, :rank].to(gradient.dtype)


def _project(gradient: torch.Tensor, projection: torch.Tensor) -> torch.Tensor:
    if _is_tall(gradient):
        return torch.matmul(gradient, projection.t())
    return torch.matmul(projection.t(), gradient)


def _project_back(update: torch.Tensor, projection: torch.Tensor) -> torch.Tensor:
    if _is_tall(update):
        return torch.matmul(update, projection) * 0.25
    return torch.matmul(projection, update) * 0.25
