"""Sees every call of an outermost module, with its arguments, and leaves the inner ones alone.

`Module.__call__` is torch's own again while an outermost module runs: inner calls are as fast, and
as readable in a traceback, as without us.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from .agent import Agent

Library: TypeAlias = Any


def watch_roots(agent: Agent) -> None:
    """Call `before_root` and enter `around_root` of the agent for each outermost module."""
    module_class = agent.torch.nn.Module
    original = module_class.__call__

    def call(self: Library, *arguments: Library, **named: Library) -> Library:
        module_class.__call__ = original
        try:
            for see in agent.before_root:
                agent.guarded(see)(self, arguments, named)
            if not agent.around_root:
                return original(self, *arguments, **named)
            with ExitStack() as stack:
                for make in agent.around_root:
                    context = agent.guarded(make)(self)
                    if context is not None:
                        stack.enter_context(context)
                return original(self, *arguments, **named)
        finally:
            module_class.__call__ = call

    module_class.__call__ = call
