"""oomdoctor: says which kind of out-of-memory a log shows, why, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis as Diagnosis
    from oomdoctor.pipeline import diagnose as diagnose

__all__ = ["Diagnosis", "__version__", "diagnose"]

_HOMES = {"diagnose": "oomdoctor.pipeline", "Diagnosis": "oomdoctor.model.plan"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a public name of any type (PEP 562)
    """Import a public name on first use, so that `import oomdoctor` costs nothing."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    message = f"module 'oomdoctor' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return sorted(__all__)
