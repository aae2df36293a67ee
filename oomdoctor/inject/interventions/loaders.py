"""Shared by what changes the arguments of every DataLoader."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def when_made(agent: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Call `change` with the arguments of each DataLoader by name; what it sets is used."""
    agent.when_imported("torch.utils.data.dataloader", functools.partial(_wrap, agent, change))


def _wrap(agent: Any, change: Callable[[dict[str, Any]], None], module: Any) -> None:
    original = module.DataLoader.__init__
    signature = inspect.signature(original)
    guarded = agent.guarded(change)

    @functools.wraps(original)
    def init(self: Any, *given: Any, **named: Any) -> None:
        arguments = dict(signature.bind(self, *given, **named).arguments)
        del arguments["self"]
        guarded(arguments)
        original(self, **arguments)

    module.DataLoader.__init__ = init
