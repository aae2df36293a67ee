"""The frames of a stack or a traceback as [file, function, line], innermost first, without ours."""

from __future__ import annotations

import os
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType
    from typing import TypeAlias

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


def leave_out_ours(value: BaseException) -> None:
    """Take frames of ours out of the tracebacks of an exception and of those that it came from."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [value]
    while waiting and len(seen) < MOST:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _trimmed(one.__traceback__)
        waiting += (one.__cause__, one.__context__, *getattr(one, "exceptions", ()))


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    kept = []
    has_ours = False
    while trace is not None:
        is_ours = _is_ours(trace.tb_frame.f_code)
        has_ours = has_ours or is_ours
        if not is_ours:
            kept.append(trace)
        trace = trace.tb_next
    if not has_ours:
        return kept[0] if kept else None
    for one in reversed(kept):
        trace = types.TracebackType(trace, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return trace


def _is_ours(code: CodeType) -> bool:
    return os.path.abspath(code.co_filename).startswith(HERE + os.sep)


def _add(found: Frames, code: CodeType, line: int | None) -> None:
    if not _is_ours(code):
        found.append((code.co_filename, code.co_name, line or 0))
