"""The decorator that says which lint rules a test proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def proves(*rules: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test as a proof of these rules; its docstring is the claim, in one sentence."""
    return pytest.mark.proves(*rules)
