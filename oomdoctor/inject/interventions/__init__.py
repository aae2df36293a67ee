"""Changes that a trial makes in the process instead of in the user's files, by name.

Each module has `install(agent, arguments)`, which waits for the imports it needs. What cannot be
done is told (`note`), never raised.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

REGISTRY: dict[str, str] = {
    "nothing": "nothing",  # a control: it is injected and must not help
    "no-grad": "no_grad",
    "detach-losses": "detach_losses",
    "release-graph": "release_graph",
    "empty-cache": "empty_cache",
    "collect-garbage": "collect_garbage",
    "gradient-checkpointing": "gradient_checkpointing",
    "attention": "attention",
    "no-use-cache": "no_use_cache",
    "eval-accumulation": "eval_accumulation",
    "optimizer": "optimizer",
    "workers": "workers",
    "save-without-gather": "save_without_gather",
    "load-dtype": "load_dtype",
    "padding": "padding",
    "truncation": "truncation",
}
"""Name in `CommandSpec.hooks` -> module of this package."""


def install(agent: Any) -> None:
    """Install what the settings name; an unknown name is told."""
    for name, arguments in agent.settings.hooks.items():
        module = REGISTRY.get(name)
        if module is None:
            agent.tell("note", text=f"no intervention is named {name}", hook=name)
            continue
        try:
            import_module(f"{__name__}.{module}").install(agent, dict(arguments))
        except Exception as error:  # noqa: BLE001 - a hook never breaks a program
            agent.fault(f"intervention {name}", error)
