"""A bar on a terminal for reading that takes long; it goes again before the answer comes."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

SHOWN_AFTER_SECONDS = 1.0
_EVERY_SECONDS = 0.1
_WIDTH = 30
_CLEAR = "\r\x1b[2K"


class Bar:
    """Takes `(done, total)` in bytes; `total` is None where nobody knows it."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `stream`, but not before reading has taken a while."""
        self._stream = stream
        self._clock = clock
        self._next = clock() + SHOWN_AFTER_SECONDS
        self._shown = False

    def __call__(self, done: int, total: int | None) -> None:
        """Show how far reading has come, now and then."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        self._shown = True
        self._write(_CLEAR + _line(done, total))

    def close(self) -> None:
        """Take the bar away."""
        if self._shown:
            self._write(_CLEAR)
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._next = float("inf")


def _line(done: int, total: int | None) -> str:
    if not total:
        return f"reading {format_size(done)}"
    share = min(1.0, done / total)
    filled = round(share * _WIDTH)
    bar = "#" * filled + "-" * (_WIDTH - filled)
    return f"reading [{bar}] {share:4.0%} of {format_size(total)}"


@contextmanager
def bar_for(*, quiet: bool) -> Iterator[Bar | None]:
    """Give a progress bar where somebody watches standard error, and take it away at the end."""
    watched = sys.stderr is not None and sys.stderr.isatty()
    if quiet or not watched or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = Bar(sys.stderr)
    try:
        yield bar
    finally:
        bar.close()
