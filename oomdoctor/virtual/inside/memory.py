"""The memory of the virtual cards as Python sees it: what is known of a tensor."""

from __future__ import annotations

import ctypes
import weakref
from functools import partial
from typing import Any, TypeAlias

from . import places

Library: TypeAlias = Any

LIMIT = 1 << 20  # bytes
WIDE_LIMIT = 16 << 20  # of integers with 8 bytes, such as experts by token; as in csrc/values.c
FLOAT_LIMIT = 4096  # bytes; floats are counters, scales and flags, not activations
MOST_ROWS = 4096


class Card:
    """The memory of the virtual cards, byte by byte."""

    def __init__(self, torch: Library) -> None:
        """Find the functions of the stub driver, which is loaded already."""
        self.torch = torch
        # programs put others in their place, which make tensors on the card (DeepSpeed's ZeRO-3)
        self._makers = {name: getattr(torch, name) for name in ("empty", "full", "tensor")}
        driver = ctypes.CDLL(None)
        address, size = ctypes.c_size_t, ctypes.c_size_t
        self._known = driver.vc_known
        self._known.argtypes = (address, ctypes.c_void_p, size)
        self._written = driver.vc_noted
        self._written.argtypes = (address, ctypes.c_void_p, size)
        self._unknown = driver.vc_unknown
        self._unknown.argtypes = (address, size)
        self._report = partial(driver.vc_report, b"assumed")
        self._watched: set[int] = set()
        self.constants: dict[int, bool] = {}
        """Tensors too large to be followed whose elements are all the same, by their address."""

    def report(self, said: str) -> None:
        """Tell what was taken for granted, and at which line of the program."""
        self._report(f"{said}, at {places.where()}".encode())

    def new(self, maker: str, *arguments: Library, **named: Library) -> Library:
        """Return a new tensor that lies on the host, whatever the program has as its default."""
        return self._makers[maker](*arguments, **named, device="cpu")

    def read(self, tensor: Library) -> Library | None:
        """Return a copy on the host, None where a byte is not known."""
        if tensor.device.type != "cuda":
            return tensor
        size = span(tensor)
        if not 0 < size <= limit(tensor):
            return self.new("empty", tensor.shape, dtype=tensor.dtype) if size == 0 else None
        buffer = (ctypes.c_char * size)()
        if not self._known(tensor.data_ptr(), buffer, size):
            return None
        flat = self.torch.frombuffer(buffer, dtype=tensor.dtype)
        return flat.as_strided(tensor.shape, tensor.stride())

    def write(self, tensor: Library, values: Library) -> None:
        """Note the values of a tensor, or that they are not known (None)."""
        size = span(tensor)
        if not 0 < size <= max(LIMIT, limit(tensor)):
            return
        gaps = size != tensor.numel() * tensor.element_size()
        if gaps and tensor.dim() > 1 and tensor.numel() <= MOST_ROWS * tensor.shape[-1]:
            # what lies between the rows of a view is not its own
            for row, own in zip(tensor, values if values is not None else tensor, strict=True):
                self.write(row, None if values is None else own)
            return
        if values is None or gaps or size > limit(tensor):
            self._unknown(tensor.data_ptr(), size)
            return
        buffer = (ctypes.c_char * size)()
        flat = self.torch.frombuffer(buffer, dtype=tensor.dtype)
        flat.as_strided(tensor.shape, tensor.stride()).copy_(values)
        self._written(tensor.data_ptr(), buffer, size)
        self._watch(tensor.untyped_storage())

    def fill(self, tensor: Library, value: bool) -> None:
        """Note that all elements are true, or false."""
        if span(tensor) <= LIMIT:
            self.write(tensor, self.new("full", tensor.shape, value))
        else:
            self.constants[tensor.data_ptr()] = value
            self._watch(tensor.untyped_storage())

    def _watch(self, storage: Library) -> None:
        """Forget a tensor's values when its memory is given back, for others to use."""
        address = storage.data_ptr()
        if address not in self._watched:
            self._watched.add(address)
            watch = weakref.finalize(storage, self._forget, address, storage.nbytes())
            watch.atexit = False

    def _forget(self, address: int, size: int) -> None:
        self._watched.discard(address)
        self.constants.pop(address, None)
        self._unknown(address, size)


def span(tensor: Library) -> int:
    """Return the bytes from the first to the last element."""
    if not tensor.numel():
        return 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int((last + 1) * tensor.element_size())


def limit(tensor: Library) -> int:
    """Return how many bytes of such a tensor are followed."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return FLOAT_LIMIT
    return WIDE_LIMIT if tensor.element_size() == 8 else LIMIT
