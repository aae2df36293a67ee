"""What a long command is doing, on a terminal's standard error: one line that goes again."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLEAR = "\r\x1b[2K"
_LONGEST = 100


@contextmanager
def steps_for(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """Give what tells a step; it says nothing where nobody watches, or on paper."""
    stream = sys.stderr
    if quiet or stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda *_: None
        return
    begun = time.monotonic()

    def say(text: object, *_: object) -> None:
        shown = "".join(char if char.isprintable() else "?" for char in str(text))[:_LONGEST]
        try:
            stream.write(f"{_CLEAR}[{time.monotonic() - begun:4.1f} s] {shown}")
            stream.flush()
        except (OSError, ValueError):
            return

    try:
        yield say
    finally:
        try:
            stream.write(_CLEAR)
            stream.flush()
        except (OSError, ValueError):
            pass
