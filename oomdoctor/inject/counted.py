"""Counts the bytes of tensors on the host as if they were on a card, and refuses above a cap.

    memory = CountedMemory(torch, cap_bytes=1 << 30)
    memory.enter()          # for the rest of the process, or until leave()
    memory.peak_bytes

Every operator of the thread that enters it passes here (autograd runs backward of host tensors in
the thread that asked for it). A storage counts from the operator that returned it until it is
freed; what an operator needs inside itself is not seen. Before a request is refused, cycles of
objects are collected: whether it fits does not hang on when Python last did that. The error is
torch's own class with the words of its CUDA allocator, so that code which handles the one handles
the other.
"""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

_MIB = 1 << 20
_GIB = 1 << 30
_ROOM_BYTES = 2 * _GIB  # for what is no tensor, and for a request above the cap to be made and seen
_REFUSED = re.compile(r"DefaultCPUAllocator: .*you tried to allocate (\d+) bytes")


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

    def refused(self, error: RuntimeError) -> Exception:
        """Return the error of a request that the host itself refused, as one above the cap."""
        found = _REFUSED.search(str(error))
        if found is None or self.cap_bytes is None or self._is_of_a_loader():
            return error
        return self._out_of_memory(int(found[1]))

    def _note_tensor(self, tensor: Any) -> None:
        if tensor.device.type != "cpu":
            return
        if hasattr(tensor, "__tensor_flatten__"):  # its own storage is a fiction
            for name in tensor.__tensor_flatten__()[0]:
                self.note(getattr(tensor, name))
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
        if self._is_above_cap(more):
            raise self._out_of_memory(more)
        self._live[key] = size
        self.live_bytes += more
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if before is None:
            weakref.finalize(storage, self._forget, key).atexit = False

    def _is_above_cap(self, more: int) -> bool:
        cap = self.cap_bytes
        if cap is None or self.live_bytes + more <= cap or self._is_of_a_loader():
            return False
        gc.collect()
        return self.live_bytes + more > cap

    def _is_of_a_loader(self) -> bool:
        """Say whether this is a worker of a DataLoader: its tensors never stand on a card."""
        return self._torch.utils.data.get_worker_info() is not None

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


def limit_data(cap_bytes: int) -> None:
    """Let the kernel refuse what is far above the cap, before the host runs out of memory."""
    import resource

    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        used = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + cap_bytes + _ROOM_BYTES
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _mode() -> Any:
    """Return the class of the mode; torch is imported by then."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        """Hands every operator's result to the counter."""

        supports_higher_order_operators = True  # they run as they are; their results are counted

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing here is compiled, and its import takes as long as torch's

        def __init__(self, memory: CountedMemory) -> None:
            super().__init__()
            self._memory = memory

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            try:
                out = func(*args, **(kwargs or {}))
            except RuntimeError as error:
                other = self._memory.refused(error)
                if other is error:
                    raise
                raise other from None
            try:
                self._memory.note(out)
            except BaseException:
                del out  # or the traceback would keep what was refused
                raise
            return out

    return Counting


def _size(count: int) -> str:
    """Return bytes as CUDA's allocator prints them."""
    if count >= _GIB:
        return f"{count / _GIB:.2f} GiB"
    if count >= _MIB:
        return f"{count / _MIB:.2f} MiB"
    return f"{count / 1024:.2f} KiB" if count >= 1024 else f"{count} bytes"
