"""The memory of the fake card: real torch tensors on 'cuda' whose bytes are nowhere.

A tensor is handed to torch as a DLPack capsule, with an address that nothing may read. torch owns
its storage as it owns any other and calls the capsule's deleter when the last view, saved tensor
or gradient lets go of it: at that very moment the allocation is freed here. No tensor subclass and
no dispatch mode is involved, so that autograd, autocast and the composite operators of torch take
the same way as on a card.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FIRST_ADDRESS = 0x1000_0000_0000
GRANULE = 512  # what the caching allocator rounds to: addresses are as aligned as a card's
DLPACK_CUDA = 2
UNSIGNED, SIGNED, FLOAT, BRAIN_FLOAT, COMPLEX, BOOLEAN = 1, 0, 2, 4, 5, 6

Geometry = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""Sizes, strides and dtype of a tensor."""

KINDS: dict[torch.dtype, tuple[int, int]] = {
    torch.float16: (FLOAT, 16),
    torch.float32: (FLOAT, 32),
    torch.float64: (FLOAT, 64),
    torch.bfloat16: (BRAIN_FLOAT, 16),
    torch.int8: (SIGNED, 8),
    torch.int16: (SIGNED, 16),
    torch.int32: (SIGNED, 32),
    torch.int64: (SIGNED, 64),
    torch.uint8: (UNSIGNED, 8),
    torch.uint16: (UNSIGNED, 16),
    torch.uint32: (UNSIGNED, 32),
    torch.uint64: (UNSIGNED, 64),
    torch.bool: (BOOLEAN, 8),
    torch.complex64: (COMPLEX, 64),
    torch.complex128: (COMPLEX, 128),
}
BYTES = (UNSIGNED, 8)


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Ledger(Protocol):
    """Who counts the allocations."""

    def alloc(self, size: int, operator: str) -> int:
        """Take down an allocation and return its number."""

    def free(self, number: int) -> None:
        """Take down that an allocation is freed."""

    def last_is_unnamed(self) -> bool:
        """Say that the last allocation is an empty tensor that nothing has written into."""

    def name_last(self, number: int, operator: str) -> None:
        """Name what wrote into the last allocation, if that is the one with this number."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_KEPT: list[object] = []
"""What torch calls and reads to free a tensor, perhaps after the memory itself is gone."""
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_forget_error = ctypes.PyDLL(None).PyErr_Clear
_forget_error.restype = None
_forget_error.argtypes = []


class FakeMemory:
    """Makes tensors on the fake card and tells a ledger of each allocation and its end."""

    def __init__(self, ledger: Ledger) -> None:
        """Make an empty memory."""
        self.ledger = ledger
        self.owners: dict[int, int] = {}  # address of a storage -> number of its allocation
        self.sizes: dict[int, int] = {}  # address of a storage -> bytes
        self.on_free: Callable[[int], None] | None = None  # called with the address
        self._next = FIRST_ADDRESS
        self._live: dict[int, int] = {}  # address of a capsule's struct -> address of its storage
        self._spare: list[_Managed] = []
        self._structs: dict[int, _Managed] = {}
        self._lengths: dict[tuple[int, ...], ctypes.Array[ctypes.c_int64]] = {}
        self._deleter = _Deleter(_told_weakly(self))
        _KEPT.append((self._deleter, self._structs))
        self._deleter_address = ctypes.cast(self._deleter, ctypes.c_void_p).value

    def new(self, geometry: Geometry, operator: str) -> torch.Tensor:
        """Return an uninitialised tensor with a storage of its own."""
        sizes, strides, dtype = geometry
        kind = KINDS.get(dtype)
        if kind is None:  # a dtype that DLPack does not know (float8, ...): bytes, seen as such
            return self._new_bytes(sizes, strides, dtype, operator)
        return self._make(sizes, strides, kind, storage_bytes(sizes, strides, kind[1]), operator)

    def _new_bytes(
        self, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, operator: str
    ) -> torch.Tensor:
        count = storage_bytes(sizes, strides, 8)
        width = dtype.itemsize
        raw = self._make((count * width,), (1,), BYTES, count * width, operator)
        return raw.view(dtype).as_strided(sizes, strides)

    def _make(
        self,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
        kind: tuple[int, int],
        size: int,
        operator: str,
    ) -> torch.Tensor:
        managed = self._spare.pop() if self._spare else self._new_struct()
        tensor = managed.tensor
        tensor.data = address = self._next
        tensor.dimensions = len(sizes)
        tensor.type.code, tensor.type.bits = kind
        tensor.shape = ctypes.addressof(self._array(sizes))
        tensor.strides = ctypes.addressof(self._array(strides))
        self._next = address + -(-size // GRANULE) * GRANULE + GRANULE
        here = ctypes.addressof(managed)
        if size:
            self.owners[address] = self.ledger.alloc(size, operator)
            self.sizes[address] = size
        self._live[here] = address
        made: torch.Tensor = torch._C._from_dlpack(_new_capsule(here, b"dltensor", None))
        return made

    def _new_struct(self) -> _Managed:
        managed = _Managed()
        managed.tensor.device = _Device(DLPACK_CUDA, 0)
        managed.tensor.type.lanes = 1
        managed.deleter = self._deleter_address
        self._structs[ctypes.addressof(managed)] = managed
        return managed

    def _array(self, lengths: tuple[int, ...]) -> ctypes.Array[ctypes.c_int64]:
        array = self._lengths.get(lengths)
        if array is None:
            array = self._lengths[lengths] = (ctypes.c_int64 * max(1, len(lengths)))(*lengths)
        return array

    def _deleted(self, here: int) -> None:
        """Hear from torch that nobody holds a storage any more."""
        address = self._live.pop(here)
        self._spare.append(self._structs[here])
        number = self.owners.pop(address, None)
        if number is not None:
            del self.sizes[address]
            self.ledger.free(number)
            if self.on_free is not None:
                self.on_free(address)

    def resize(self, address: int, size: int) -> None:
        """Free what a storage holds and, unless its new size is none, allocate that."""
        number = self.owners.pop(address, None)
        if number is not None:
            del self.sizes[address]
            self.ledger.free(number)
            if self.on_free is not None:
                self.on_free(address)
        if size:
            self.owners[address] = self.ledger.alloc(size, "storage.resize_")
            self.sizes[address] = size

    def name(self, tensor: torch.Tensor, operator: str) -> None:
        """Name the operator that an empty tensor was made for: the first that writes into it."""
        if self.ledger.last_is_unnamed():
            number = self.owners.get(base_of(tensor))
            if number is not None:
                self.ledger.name_last(number, operator)

    def number_of(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the allocation behind a tensor, None where it has no bytes here."""
        if tensor.device.type != "cuda":
            return None
        return self.owners.get(base_of(tensor))


def _told_weakly(memory: FakeMemory) -> Callable[[int], None]:
    """Return a function that tells a memory what torch frees, as long as there is that memory.

    torch also frees while an error is on its way up; with it pending, no Python could run.
    """
    known = weakref.ref(memory)

    def freed(here: int) -> None:
        _forget_error()
        found = known()
        if found is not None:
            found._deleted(here)

    return freed


def base_of(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage.

    `untyped_storage()` would leave a Python object with the storage, and with it a reference that
    torch counts.
    """
    return tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize


def storage_bytes(sizes: Sequence[int], strides: Sequence[int], bits: int) -> int:
    """Return the bytes that a tensor of these sizes and strides needs.

    >>> storage_bytes((2, 3), (4, 1), 16)
    14
    """
    reach = 1
    for size, stride in zip(sizes, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach * bits // 8
