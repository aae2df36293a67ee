"""Lets `zero_grad` give gradients back instead of filling them with zeros."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    del arguments
    agent.when_imported("torch", functools.partial(_wrap, agent))


def _wrap(agent: Any, torch: Any) -> None:
    for owner in (torch.optim.Optimizer, torch.nn.Module):
        owner.zero_grad = _giving_back(agent, owner.zero_grad)


def _giving_back(agent: Any, original: Any) -> Any:
    @functools.wraps(original)
    def zero_grad(self: Any, set_to_none: bool = True) -> Any:  # noqa: FBT002 - torch's signature
        if not set_to_none:
            agent.intervened("zero-grad-none")
        return original(self, set_to_none=True)

    return zero_grad
