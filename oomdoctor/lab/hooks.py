"""The changes that can be injected into a command, by name: one file each in `inject`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "inject" / "interventions"
_SHARED = ("__init__", "of_models", "loaders")


def names() -> frozenset[str]:
    """Return the names of the injected changes; nothing of them is imported here."""
    stems = (path.stem for path in FOLDER.glob("*.py"))
    return frozenset(stem.replace("_", "-") for stem in stems if stem not in _SHARED)
