"""Computes the cross entropy in chunks of tokens, each again in the backward pass: {"tokens": 256}.

The logits exist as before; what the loss keeps of them, and its gradient's copies, do not.
"""

from __future__ import annotations

import functools
from typing import Any

_PLAIN = {"weight": None, "size_average": None, "reduce": None, "label_smoothing": 0.0}


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    tokens = int(arguments.get("tokens") or 256)
    agent.when_imported("torch", functools.partial(_wrap, agent, tokens))


def _wrap(agent: Any, tokens: int, torch: Any) -> None:
    functional = torch.nn.functional
    original = functional.cross_entropy

    @functools.wraps(original)
    def cross_entropy(input: Any, target: Any, *given: Any, **named: Any) -> Any:  # noqa: A002 - torch's name
        odd = [key for key, value in named.items() if _PLAIN.get(key, value) != value]
        reduction = named.get("reduction", "mean")
        if given or odd or input.dim() != 2 or target.is_floating_point() or reduction == "none":
            agent.note("chunked-loss", "a loss with these arguments is not computed in chunks")
            return original(input, target, *given, **named)
        ignored = named.get("ignore_index", -100)
        agent.intervened("chunked-loss")
        total = _in_chunks(torch, original, input, target, (ignored, tokens))
        return total / (target != ignored).sum() if reduction == "mean" else total

    functional.cross_entropy = cross_entropy


def _in_chunks(torch: Any, loss: Any, logits: Any, target: Any, by: tuple[int, int]) -> Any:
    from torch.utils.checkpoint import checkpoint

    ignored, tokens = by

    def part(some: Any, wanted: Any) -> Any:
        return loss(some, wanted, ignore_index=ignored, reduction="sum")

    sums = [
        checkpoint(part, some, wanted, use_reentrant=False)
        for some, wanted in zip(logits.split(tokens), target.split(tokens), strict=True)
    ]
    return torch.stack(sums).sum()
