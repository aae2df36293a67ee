"""Counts the bytes of tensors on the host as if they were on a card, and refuses above a cap.

    memory = CountedMemory(torch, cap_bytes=1 << 30)
    memory.enter()          # for the rest of the process, or until leave()
    memory.peak_bytes

Every operator of the thread that enters it passes here (autograd runs backward of host tensors in
the thread that asked for it). A storage counts from the operator that returned it until it is
freed; what an operator needs inside itself is not seen. The error is torch's own class with the
words of its CUDA allocator, so that code which handles the one handles the other.
"""

from __future__ import annotations

import weakref
from typing import Any

_MIB = 1 << 20
_GIB = 1 << 30


class CountedMemory:
    """Live and highest bytes of the storages on the host that operators made.

    `told` is called with (requested bytes, live bytes) before the error is raised.
    """

    def __init__(self, torch: Any, cap_bytes: int | None = None, told: Any = None) -> None:
        """Count nothing yet."""
        self.cap_bytes = cap_bytes
        self.live_bytes = 0
        self.peak_bytes = 0
        self._torch = torch
        self._told = told
        self._live: dict[int, int] = {}
        self._mode = _mode()(self)

    def enter(self) -> None:
        """Begin to count what is made from here on."""
        self._mode.__enter__()

    def leave(self) -> None:
        """Count no more."""
        self._mode.__exit__(None, None, None)

    def reset_peak(self) -> None:
        """Begin to look for the peak anew."""
        self.peak_bytes = self.live_bytes

    def note(self, value: Any) -> None:
        """Count the storages of what an operator returned that were not there before."""
        if isinstance(value, self._torch.Tensor):
            self._note_tensor(value)
        elif isinstance(value, (tuple, list)):
            for one in value:
                self.note(one)

    def _note_tensor(self, tensor: Any) -> None:
        if tensor.device.type != "cpu":
            return
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a sparse tensor, or one without storage
            return
        size = storage.nbytes()
        key = storage._cdata
        before = self._live.get(key)
        if size == (before or 0):
            return
        more = size - (before or 0)
        if self.cap_bytes is not None and self.live_bytes + more > self.cap_bytes:
            raise self._out_of_memory(more)
        self._live[key] = size
        self.live_bytes += more
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if before is None:
            weakref.finalize(storage, self._forget, key).atexit = False

    def _forget(self, key: int) -> None:
        self.live_bytes -= self._live.pop(key, 0)

    def _out_of_memory(self, requested: int) -> Exception:
        live = self.live_bytes
        if self._told is not None:
            self._told(requested, live)
        cap = self.cap_bytes or 0
        text = (
            f"CUDA out of memory. Tried to allocate {_size(requested)}. "
            f"Counted host memory has a total capacity of {_size(cap)} of which "
            f"{_size(max(0, cap - live))} is free. Of the allocated memory {_size(live)} is "
            "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
        )
        kind = getattr(self._torch, "OutOfMemoryError", None) or self._torch.cuda.OutOfMemoryError
        error: Exception = kind(text)
        return error


def _mode() -> Any:
    """Return the class of the mode; torch is imported by then."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        """Hands every operator's result to the counter."""

        def __init__(self, memory: CountedMemory) -> None:
            super().__init__()
            self._memory = memory

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            self._memory.note(out)
            return out

    return Counting


def _size(count: int) -> str:
    """Return bytes as CUDA's allocator prints them."""
    if count >= _GIB:
        return f"{count / _GIB:.2f} GiB"
    if count >= _MIB:
        return f"{count / _MIB:.2f} MiB"
    return f"{count / 1024:.2f} KiB" if count >= 1024 else f"{count} bytes"
