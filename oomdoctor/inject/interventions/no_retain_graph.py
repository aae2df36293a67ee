"""Lets every backward pass free its graph: `retain_graph=True` is passed over."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    del arguments
    agent.when_imported("torch", functools.partial(_wrap, agent))


def _wrap(agent: Any, torch: Any) -> None:
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(
        tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, *given: Any, **named: Any
    ) -> Any:
        if retain_graph:
            agent.intervened("no-retain-graph")
        keep = None if retain_graph else retain_graph
        return original(tensors, grad_tensors, keep, *given, **named)

    torch.autograd.backward = backward
