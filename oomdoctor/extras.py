"""Packages that only some parts need: imported when they are used, named where they lack."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

from oomdoctor.errors import UsageError

Library: TypeAlias = Any
"""A module, class or object of a package that is imported only when it is used."""


def need(module: str, *, purpose: str, extra: str) -> Library:
    """Import a module of an extra, or say what lacks, for what, and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(
            f"{purpose} needs the package {package}", hint=f"pip install 'oomdoctor[{extra}]'"
        ) from error
