"""The terminal of an interview: lines in, pastes in, pages out; works without any library."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.layout import Line
    from oomdoctor.render.theme import Theme

# How long to wait for the next line of a paste, and the longest paste that is taken.
PASTE_WAIT_S = 0.15
MOST_CHARACTERS = 4_000_000


class LeavingError(Exception):
    """The person leaves the interview (Ctrl-D, quit)."""


class Terminal:
    """Standard input and standard error of somebody who sits there."""

    def __init__(self, theme: Theme) -> None:
        """Take how pages look; a byte that is no character is no failure."""
        self.theme = theme
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")

    def show(self, lines: Sequence[Line]) -> None:
        """Print a page on standard error."""
        from oomdoctor.render.text import paint

        sys.stderr.write(paint(lines, self.theme))
        sys.stderr.flush()

    def line(self) -> str:
        """Ask for one line; Ctrl-D leaves."""
        sys.stderr.write("> ")
        sys.stderr.flush()
        text = sys.stdin.readline()
        if not text:
            sys.stderr.write("\n")
            raise LeavingError
        return text.rstrip("\r\n")

    def rest_of(self, first: str, *, waits: bool) -> str:
        """Return a line with those that follow at once; a paste goes on to an empty line or Ctrl-D.

        An empty line inside of what is pasted does not end it: more is waiting behind it.
        """
        lines = [first]
        size = len(first)
        while size < MOST_CHARACTERS and (waits or is_more_waiting()):
            text = sys.stdin.readline()
            if not text or (not text.strip("\r\n") and not is_more_waiting()):
                break
            lines.append(text.rstrip("\r\n"))
            size += len(text)
            waits = waits or len(lines) > 1
        return "\n".join(lines)


def is_more_waiting() -> bool:
    """Say whether another line arrives within a moment, as in a paste."""
    if os.name == "nt":  # pragma: no cover - needs a Windows console
        return _is_key_waiting()
    import select

    try:
        ready, _, _ = select.select([sys.stdin], [], [], PASTE_WAIT_S)
    except (OSError, ValueError):
        return False
    return bool(ready)


def _is_key_waiting() -> bool:  # pragma: no cover - needs a Windows console
    import time
    from importlib import import_module

    console = import_module("msvcrt")
    if not console.kbhit():
        time.sleep(PASTE_WAIT_S)
    return bool(console.kbhit())
