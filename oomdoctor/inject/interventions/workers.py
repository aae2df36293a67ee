"""Sets the number of worker processes of every DataLoader: {"count": 0}."""

from __future__ import annotations

import functools
from typing import Any

_OF_WORKERS = (
    "prefetch_factor",
    "persistent_workers",
    "multiprocessing_context",
    "timeout",
    "worker_init_fn",
    "in_order",
)
_POSITION = 5  # of num_workers among the arguments of DataLoader, after the data set


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for DataLoader."""
    count = int(arguments.get("count") or 0)
    agent.when_imported("torch.utils.data.dataloader", functools.partial(_wrap, agent, count))


def _wrap(agent: Any, count: int, module: Any) -> None:
    original = module.DataLoader.__init__

    @functools.wraps(original)
    def init(self: Any, *given: Any, **named: Any) -> None:
        if len(given) > _POSITION + 1:  # given by position: they stay as they are
            agent.tell("note", hook="workers", text="num_workers is given by position")
            return original(self, *given, **named)
        if given[_POSITION:]:
            given = given[:_POSITION]
        if named.get("num_workers") != count:
            agent.tell(
                "applied", hook="workers", text=f"{named.get('num_workers') or 0} -> {count}"
            )
        if count == 0:
            named = {key: value for key, value in named.items() if key not in _OF_WORKERS}
        return original(self, *given, **{**named, "num_workers": count})

    module.DataLoader.__init__ = init
