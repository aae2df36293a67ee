"""Packages that only some parts need: imported when they are used, named where they lack."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oomdoctor.errors import UsageError


def need(module: str, *, purpose: str, extra: str) -> Any:  # noqa: ANN401 - what a module holds is its own
    """Import a module of an extra, or say what lacks, for what, and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(
            f"{purpose} needs the package {package}", hint=f"pip install 'oomdoctor[{extra}]'"
        ) from error
