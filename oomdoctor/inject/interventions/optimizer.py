"""Swaps Adam and AdamW for smaller states: {"name": "sgd" | "adafactor" | "adamw-8bit"}."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    wanted = str(arguments.get("name") or "sgd")
    agent.when_imported("torch", functools.partial(_swap, agent, wanted))


def _swap(agent: Any, wanted: str, torch: Any) -> None:
    for name in ("Adam", "AdamW"):
        setattr(torch.optim, name, _stand_in(agent, wanted, torch, getattr(torch.optim, name)))


def _stand_in(agent: Any, wanted: str, torch: Any, original: Any) -> Any:
    """Return a class of the same name that makes the other optimizer."""

    class Smaller(original):
        def __new__(cls, params: Any, lr: Any = 1e-3, **named: Any) -> Any:
            agent.intervened("optimizer", f"{original.__name__} -> {wanted}")
            if wanted == "sgd":
                return torch.optim.SGD(params, lr=lr)
            if wanted == "adafactor":
                return torch.optim.Adafactor(params, lr=lr)
            import bitsandbytes

            kept = {key: named[key] for key in ("betas", "eps", "weight_decay") if key in named}
            return bitsandbytes.optim.AdamW8bit(params, lr=lr, **kept)

    Smaller.__name__ = Smaller.__qualname__ = original.__name__
    return Smaller
