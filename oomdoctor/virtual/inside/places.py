"""The line of the program that is under way, for reports of what nobody knows.

train.py:41 in train
train.py:88, through transformers/trainer.py:2510 in _maybe_log_save_evaluate
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

Pointer: TypeAlias = Any
"""A pointer or a function of ctypes, whose kinds are made while it runs."""
PACKAGE = Path(__file__).resolve().parents[2]
OURS = tuple(f"{PACKAGE / name}{os.sep}" for name in ("virtual", "inject"))
LIBRARIES = ("/site-packages/", "/dist-packages/")
STANDARD = str(Path(os.__file__).parent) + os.sep
NOBODY = "a thread without a line of Python, such as the one of the backward pass"


def finder() -> Pointer:
    """Return `where` as a function that the library in C can call."""

    def write(text: Pointer, room: int) -> None:
        place = where().encode()[: room - 1] + b"\0"
        ctypes.memmove(text, place, len(place))

    return ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_char), ctypes.c_int)(write)


def where() -> str:
    """Return the user's line, and the library's below it that asked."""
    inner, own = None, None
    for frame in _frames():
        name = frame.f_code.co_filename
        if _is_ours(name):
            continue
        inner = inner or frame
        if not _is_library(name):
            own = frame
            break
    if inner is None:
        return NOBODY
    if own is None or own is inner:
        return f"{_line(inner)} in {inner.f_code.co_name}"
    return f"{_line(own)}, through {_line(inner)} in {inner.f_code.co_name}"


def _frames() -> Iterator[FrameType]:
    """Yield the frames of this thread, the innermost first."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the one way to it
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_ours(name: str) -> bool:
    """Say whether code is the hooks' or torch's own, which tells a user nothing."""
    return name.startswith((*OURS, "<")) or any(f"{one}torch/" in name for one in LIBRARIES)


def _is_library(name: str) -> bool:
    return any(one in name for one in LIBRARIES) or name.startswith(STANDARD)


def _line(frame: FrameType) -> str:
    name = frame.f_code.co_filename
    for one in LIBRARIES:
        name = name.rpartition(one)[2]
    here = str(Path.cwd()) + os.sep
    return f"{name.removeprefix(here)}:{frame.f_lineno}"
