"""A guard against hanging: fails a test that would never end; speed goals live in benchmarks/."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

HANGS_AFTER_S = 120


class HangError(AssertionError):
    """The guarded block did not end."""


@contextmanager
def no_hang(seconds: int = HANGS_AFTER_S) -> Iterator[None]:
    """Fail the test where the block runs longer than any loaded machine would need."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"still running after {seconds} s")

    held = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, held)
