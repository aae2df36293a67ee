"""Files of tensors that a program saves on a virtual card: they hold zeros, so none is kept.

A real checkpoint of the same name would be lost to one of zeros. So what torch and safetensors save
goes to a scratch folder, from which it is also read again in the same run; where there is too much
of it, it is written nowhere. All else that a program writes is its own affair.
"""

from __future__ import annotations

import functools
import io
import os
import shutil
from pathlib import Path
from typing import Any, TypeAlias

Library: TypeAlias = Any
MOST_BYTES = 1 << 30
_DEPTH = 6


class Nowhere(io.RawIOBase):
    """A file that takes everything and keeps nothing."""

    def __init__(self) -> None:
        """Be empty."""
        self.position = 0

    def writable(self) -> bool:
        """Take what is written."""
        return True

    def write(self, data: Library) -> int:
        """Keep nothing of it."""
        size = memoryview(data).nbytes
        self.position += size
        return size

    def tell(self) -> int:
        """Return how much was written."""
        return self.position


class Scratch:
    """The folder for what is saved, with the paths of the originals below it."""

    def __init__(self, folder: str) -> None:
        """Use a folder that is there."""
        self.folder = Path(folder)
        self.left = min(MOST_BYTES, shutil.disk_usage(folder).free // 4)

    def place_of(self, path: Library) -> Path:
        """Return where a file of that name lies in scratch."""
        whole = Path(os.fsdecode(path)).absolute()
        return self.folder.joinpath(*whole.parts[1:])

    def to_write(self, path: Library, size: int) -> Path | None:
        """Return where to write so many bytes, None where they are too many."""
        if size > self.left:
            return None
        self.left -= size
        place = self.place_of(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def to_read(self, path: Library) -> Library:
        """Return the file to read: the one in scratch if this run wrote it."""
        if not isinstance(path, (str, os.PathLike)):
            return path
        place = self.place_of(path)
        return str(place) if place.exists() else path


def size_of(value: Library, depth: int = _DEPTH) -> int:
    """Return the bytes of the tensors in a nest of dictionaries and lists."""
    if hasattr(value, "nbytes") and hasattr(value, "dtype"):
        return int(value.nbytes)
    if depth and hasattr(value, "values"):
        return sum(size_of(one, depth - 1) for one in value.values())
    if depth and isinstance(value, (list, tuple)):
        return sum(size_of(one, depth - 1) for one in value)
    return 0


def leaves_data_out(torch: Library) -> bool:
    """Say whether the program asked for files without their data, which it fills itself."""
    thread = getattr(torch.serialization, "_serialization_tls", None)
    return bool(getattr(thread, "skip_data", False))


def keep_apart_torch(torch: Library, scratch: Scratch) -> None:
    """Let torch save to scratch, and load from there what it saved."""
    save, load = torch.save, torch.load

    @functools.wraps(save)
    def save_apart(obj: Library, f: Library, *more: Library, **named: Library) -> Library:
        if isinstance(f, (str, os.PathLike)) and not leaves_data_out(torch):
            f = scratch.to_write(f, size_of(obj)) or Nowhere()
        return save(obj, f, *more, **named)

    @functools.wraps(load)
    def load_apart(f: Library, *more: Library, **named: Library) -> Library:
        return load(scratch.to_read(f), *more, **named)

    torch.save, torch.load = save_apart, load_apart


def keep_apart_safetensors(module: Library, scratch: Scratch) -> None:
    """Let `safetensors.torch` save to scratch."""
    save = module.save_file

    @functools.wraps(save)
    def save_apart(
        tensors: Library, filename: Library, *more: Library, **named: Library
    ) -> Library:
        place = scratch.to_write(filename, size_of(tensors))
        return None if place is None else save(tensors, str(place), *more, **named)

    module.save_file = save_apart


def read_apart_safetensors(module: Library, scratch: Scratch) -> None:
    """Let `safetensors` open what was saved to scratch."""
    kind = module.safe_open

    def safe_open(filename: Library, *more: Library, **named: Library) -> Library:
        return kind(scratch.to_read(filename), *more, **named)

    module.safe_open = safe_open
