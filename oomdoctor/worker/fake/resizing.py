"""Storages of the fake card that are emptied and filled again, as FSDP and DeepSpeed do it.

A sharded weight keeps its storage and gives the bytes away: `storage.resize_(0)`, and later
`storage.resize_(n)`. Where torch would free and allocate, the ledger hears of it, and the size that
torch keeps with the storage is written where it stands. That place is looked for, and tried, on a
storage of our own.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.worker.fake.memory import FakeMemory

WORD = ctypes.sizeof(ctypes.c_void_p)
WORDS = 12  # of a storage in C++; its size is among the first (c10/core/StorageImpl.h)
SAMPLES = (193_987, 77_773)


@cache
def size_place() -> int:
    """Return how many bytes into a storage its size stands."""
    found = [_places(size) for size in SAMPLES]
    both = set.intersection(*found)
    if len(both) != 1:
        raise UnsupportedError("this torch keeps the sizes of storages where we do not know")
    return both.pop() * WORD


def _places(size: int) -> set[int]:
    storage = torch.UntypedStorage(size, device="cpu")
    words = (ctypes.c_int64 * WORDS).from_address(storage._cdata)
    return {place for place, word in enumerate(words) if word == size}


def resizing(memory: FakeMemory, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return what replaces `UntypedStorage.resize_`."""

    def resize_(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        if storage.device.type != "cuda":
            plain(storage, size)
            return storage
        if size != storage.nbytes():
            memory.resize(storage.data_ptr(), size)
            ctypes.c_int64.from_address(storage._cdata + size_place()).value = size
        return storage

    return resize_
