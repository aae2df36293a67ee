"""The frames of a stack or a traceback as [file, function, line], innermost first, without ours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType

    Frames: TypeAlias = list[tuple[str, str, int]]

MOST = 60
HERE = os.path.dirname(os.path.abspath(__file__))


def of_stack(frame: FrameType | None) -> Frames:
    """Return a frame and those that called it."""
    found: Frames = []
    while frame is not None and len(found) < MOST:
        _add(found, frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return found


def of_traceback(trace: TracebackType | None) -> Frames:
    """Return the frames that an exception went through."""
    found: Frames = []
    while trace is not None:
        _add(found, trace.tb_frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    return found[::-1][:MOST]


def _add(found: Frames, code: CodeType, line: int) -> None:
    if not os.path.abspath(code.co_filename).startswith(HERE + os.sep):
        found.append((code.co_filename, code.co_name, line))
