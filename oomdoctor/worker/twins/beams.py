"""Beam search that goes on to the last token, whatever its scores are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASKED = "_beam_search_has_unfinished_sequences"


@contextmanager
def to_the_end(model: Any, tokens: int) -> Iterator[None]:
    """Let a search end after so many tokens: scores, which are not known, could end it earlier."""
    plain = getattr(model, _ASKED, None)  # transformers since 4.51; before, beams end themselves
    if plain is None:
        yield
        return
    passed = 0

    def goes_on(*arguments: Any, **named: Any) -> bool:
        nonlocal passed
        passed += 1
        plain(*arguments, **named)
        return passed < tokens

    setattr(model, _ASKED, goes_on)
    try:
        yield
    finally:
        delattr(model, _ASKED)
