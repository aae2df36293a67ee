"""What the lab wants of a process, as it stands in OOMDOCTOR_TRIAL.

{"device": "cpu", "steps": 2, "evaluates": false, "saves": false, "cap_bytes": 1073741824,
 "hooks": {"no-grad": {"where": "evaluate"}}}
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Settings:
    """What is asked for: `steps` None lets the program run to its own end."""

    def __init__(self, data: Mapping[str, object]) -> None:
        """Read what is known; what is missing is not asked for."""
        self.device = str(data.get("device") or "cuda")
        self.steps = _count(data.get("steps"))
        self.cap_bytes = _count(data.get("cap_bytes"))
        self.evaluates = data.get("evaluates") is True
        self.saves = data.get("saves") is True
        hooks = data.get("hooks")
        self.hooks: dict[str, dict[str, object]] = {
            str(name): dict(given) if isinstance(given, dict) else {}
            for name, given in (hooks.items() if isinstance(hooks, dict) else ())
        }


def read(environment: Mapping[str, str]) -> Settings:
    """Return the settings of an environment: JSON, or the path of a file that holds it."""
    text = environment.get("OOMDOCTOR_TRIAL") or "{}"
    if not text.lstrip().startswith("{"):
        with open(os.path.expanduser(text), encoding="utf-8") as file:
            text = file.read()
    data = json.loads(text)
    return Settings(data if isinstance(data, dict) else {})


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
