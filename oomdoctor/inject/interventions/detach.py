"""Detaches a loss in place once its backward pass is over, so that a sum of losses keeps no graph.

`total += loss` and `losses.append(loss)` then hold a number. A loss whose graph is asked for again
(`retain_graph=True`) and a view are left alone. Where a graph was held is told: the names of the
variables, in the function that called `backward`, that hold a number with the graph of a pass.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_DEEPEST = 3
_LAST = 4  # of a list are looked at


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    del arguments
    agent.when_imported("torch", functools.partial(_wrap, agent))


def _wrap(agent: Any, torch: Any) -> None:
    original = torch.Tensor.backward
    look = agent.guarded(functools.partial(_tell_holders, agent, torch))

    @functools.wraps(original)
    def backward(self: Any, *given: Any, **named: Any) -> Any:
        result = original(self, *given, **named)
        retains = named.get("retain_graph") or (len(given) > 1 and given[1])
        look(sys._getframe(1), self)
        if retains:
            agent.note("detach", "the loss is kept: its graph is asked for again (retain_graph)")
        elif not self._is_view():
            self.detach_()
            agent.intervened("detach")
        return result

    torch.Tensor.backward = backward


def _tell_holders(agent: Any, torch: Any, frame: Any, loss: Any) -> None:
    """Tell the variables of the caller that hold another loss with its graph."""
    for name, value in list(frame.f_locals.items()):
        if value is not loss and _holds_graph(torch, value, loss, _DEEPEST):
            where = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
            agent.held(f"a graph is held by {name} in {where}, line {frame.f_lineno}")


def _holds_graph(torch: Any, value: Any, loss: Any, deepest: int) -> bool:
    if isinstance(value, torch.Tensor):
        return value is not loss and value.grad_fn is not None and value.numel() == 1
    if deepest == 0 or not isinstance(value, (list, tuple, dict)):
        return False
    inner = list(value.values()) if isinstance(value, dict) else list(value)
    return any(_holds_graph(torch, one, loss, deepest - 1) for one in inner[-_LAST:])
