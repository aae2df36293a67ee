"""Detaches a loss in place once its backward pass is over, so that a sum of losses keeps no graph.

`total += loss` and `losses.append(loss)` then hold a number. A loss whose graph is asked for again
(`retain_graph=True`) and a view are left alone. Where a graph was held is told: the names of the
variables, in the function that called `backward`, that hold tensors with a graph of a pass before.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_MOST_TOLD = 5
_DEEPEST = 3


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for torch."""
    del arguments
    agent.when_imported("torch", functools.partial(_wrap, agent))


def _wrap(agent: Any, torch: Any) -> None:
    original = torch.Tensor.backward
    told: set[tuple[str, str]] = set()
    look = agent.guarded(functools.partial(_tell_holders, agent, torch, told))

    @functools.wraps(original)
    def backward(self: Any, *given: Any, **named: Any) -> Any:
        result = original(self, *given, **named)
        retains = named.get("retain_graph") or (len(given) > 1 and given[1])
        look(sys._getframe(1), self)
        if not retains and not self._is_view():
            self.detach_()
        return result

    torch.Tensor.backward = backward
    agent.tell("applied", hook="detach-losses")


def _tell_holders(
    agent: Any, torch: Any, told: set[tuple[str, str]], frame: Any, loss: Any
) -> None:
    """Tell the variables of the caller that hold another tensor with a graph."""
    for name, value in list(frame.f_locals.items()):
        where = (f"{frame.f_code.co_filename}:{frame.f_code.co_name}", name)
        if len(told) >= _MOST_TOLD or where in told or value is loss:
            continue
        if _holds_graph(torch, value, loss, _DEEPEST):
            told.add(where)
            agent.tell(
                "held", hook="detach-losses", where=where[0], variable=name, line=frame.f_lineno
            )


def _holds_graph(torch: Any, value: Any, loss: Any, deepest: int) -> bool:
    if isinstance(value, torch.Tensor):
        return value is not loss and value.grad_fn is not None and value.numel() == 1
    if deepest == 0 or not isinstance(value, (list, tuple, dict)):
        return False
    inner = list(value.values()) if isinstance(value, dict) else list(value)
    return any(_holds_graph(torch, one, loss, deepest - 1) for one in inner[-4:])
