"""The environment by which the recorder gets into every Python process of a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HOOKS = Path(__file__).resolve().parents[1] / "inject" / "hooks"
RUN, SETTINGS = "OOMDOCTOR_RUN", "OOMDOCTOR_RUN_SETTINGS"
_PATH = "PYTHONPATH"


def environment_of(
    folder: Path, settings: Mapping[str, object], *, base: Mapping[str, str]
) -> dict[str, str]:
    """Return an environment with the way in; `folder` is the bundle."""
    before = base.get(_PATH)
    return {
        **base,
        _PATH: f"{HOOKS}:{before}" if before else str(HOOKS),
        RUN: str(folder),
        SETTINGS: json.dumps(dict(settings), separators=(",", ":")),
    }
