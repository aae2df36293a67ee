"""Sees a recorded process run out of memory: refusals of the allocator, and errors that tell of it.

What a program catches is seen as well: torch calls an observer before it raises.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from .. import frames
from ..failures import causes_of

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import TypeAlias

    from ..agent import Agent
    from ..phases import Phases
    from .dumps import Dumps
    from .steps import RecordedSteps

Library: TypeAlias = Any
_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemory|CUDA_ERROR_OUT_OF_MEMORY|can't allocate memory|"
    r"CUBLAS_STATUS_ALLOC_FAILED|Cannot allocate memory|std::bad_alloc",
    re.IGNORECASE,
)
_OF_HOST = re.compile(r"DefaultCPUAllocator|Cannot allocate memory|bad_alloc")
_REQUEST = re.compile(
    r"tried to allocate (\d+) bytes|tried to allocate ([\d.]+) ([KMG])iB", re.IGNORECASE
)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SAME_SECONDS = 60.0
_MOST_TEXT = 4000


class OutOfMemory:
    """Tells of each out-of-memory error, and has it dumped."""

    def __init__(self, agent: Agent, phases: Phases, dumps: Dumps) -> None:
        """Wait for a card to be used; `steps` is set where there are any."""
        self._agent = agent
        self._phases = phases
        self.steps: RecordedSteps | None = None
        self._dumps = dumps
        self._observed = 0.0
        self._is_over = False

    def watch_cards(self, torch: Library) -> None:
        """Observe the refusals of torch's allocator; torch cannot forget an observer."""
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None) or getattr(
            torch._C, "_cuda_attachOutOfMemoryObserver", None
        )
        if attach is not None:
            attach(self._agent.guarded(self._observe))

    def stop(self) -> None:
        """Look away from here on."""
        self._is_over = True

    def _observe(self, device: int, requested: int, total: int, free: int) -> None:
        if self._is_over:
            return
        self._observed = time.monotonic()
        here = sys._getframe()
        event: dict[str, object] = {
            "device": device,
            "requested_bytes": requested,
            "card_bytes": total,
            "free_bytes": free,
            "exception": "OutOfMemoryError",
            "frames": frames.of_stack(here),
            "thread": threading.current_thread() is not threading.main_thread(),
            **self._of_card(device),
        }
        main = None if not event["thread"] else _main_frame()
        if main is not None:  # backward runs in threads of its own, which have no frames
            event["main_frames"] = frames.of_stack(main)
        self._tell(event)

    def saw_error(self, value: BaseException, trace: TracebackType | None) -> None:
        """Dump at an error that tells of memory and that no observer has told of."""
        of_memory = [one for one in causes_of(value) if _tells_of_memory(one)]
        if not of_memory or (
            time.monotonic() - self._observed < _SAME_SECONDS
            and any(type(one).__name__ == "OutOfMemoryError" for one in of_memory)
        ):
            return
        error = of_memory[-1]
        text = str(error)
        is_host = isinstance(error, MemoryError) or bool(_OF_HOST.search(text))
        event: dict[str, object] = {
            "device": None if is_host else self._device(),
            "exception": type(error).__name__,
            "text": text[:_MOST_TEXT],
            "frames": frames.of_traceback(error.__traceback__ or trace),
        }
        requested = _requested_bytes(text)
        if requested is not None:
            event["requested_bytes"] = requested
        self._tell(event)

    def _tell(self, event: dict[str, object]) -> None:
        figures = self._agent.guarded(self._phases.figures)() or {}
        under_way = self.steps.under_way() if self.steps else {"step": 0}
        event = {**figures, **event, **under_way}
        self._agent.tell("oom", **event)
        self._dumps.write({"t": round(time.time(), 3), **event})

    def _device(self) -> int | None:
        torch = self._agent.torch
        if torch is None or not torch.cuda.is_initialized():
            return None
        return int(torch.cuda.current_device())

    def _of_card(self, device: int) -> dict[str, object]:
        """Return what is known of a card besides what the allocator may have of it."""
        found: dict[str, object] = {}
        cuda = self._agent.torch.cuda
        with contextlib.suppress(Exception):
            properties = cuda.get_device_properties(device)
            found = {"device_bytes": properties.total_memory, "name": properties.name}
        with contextlib.suppress(Exception):
            found["fraction"] = cuda.get_per_process_memory_fraction(device)
        return found


def _main_frame() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _tells_of_memory(value: BaseException) -> bool:
    return isinstance(value, MemoryError) or (
        isinstance(value, (RuntimeError, OSError)) and bool(_OF_MEMORY.search(str(value)))
    )


def _requested_bytes(text: str) -> int | None:
    found = _REQUEST.search(text)
    if found is None:
        return None
    return int(found[1]) if found[1] else int(float(found[2]) * _UNITS[found[3].upper()])
