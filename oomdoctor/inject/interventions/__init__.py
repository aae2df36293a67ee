"""Changes that a trial makes in the process instead of in the user's files, by name.

Each module has `install(agent, arguments)`, which waits for the imports it needs. It says each time
it takes effect (`agent.intervened`): one that never does has shown nothing. What cannot be done is
told (`agent.note`), never raised.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = (
    "attention",
    "benchmark-off",
    "checkpointing",
    "chunked-loss",
    "collect",
    "cut-rows",
    "detach",
    "empty-cache",
    "eval-accumulation",
    "eval-rows",
    "load-16-bit",
    "load-on-host",
    "longest-first",
    "no-compile",
    "no-grad",
    "no-retain-graph",
    "nothing",
    "optimizer",
    "pad-to-longest",
    "pin-memory-off",
    "rows",
    "save-without-gather",
    "stretch-rows",
    "use-cache-off",
    "workers",
    "zero-grad-none",
)
"""What `CommandSpec.hooks` may name; each has a module of its name here."""


def install(agent: Any) -> None:
    """Install what the settings name; an unknown name is told."""
    for name, arguments in agent.settings.hooks.items():
        if name not in NAMES:
            agent.note(name, "no intervention has this name")
            continue
        try:
            module = import_module(f"{__name__}.{name.replace('-', '_')}")
            module.install(agent, dict(arguments))
        except Exception as error:  # noqa: BLE001 - a hook never breaks a program
            agent.fault(f"intervention {name}", error)
