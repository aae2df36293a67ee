"""The compiled reader of snapshots: built once by the system's C compiler, then kept.

It lies under ~/.cache/oomdoctor/snapshot, in a folder that is named after its sources and the
compiler. Where there is no compiler, or nothing can be kept, snapshots are read in Python.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from oomdoctor.errors import InputError, ProbeError
from oomdoctor.virtual import compiling

SOURCES = Path(__file__).parent / "csrc"
LIBRARY = "libsnapshot.so"
FLAGS = ("-O2", "-w", "-std=c99", "-I", str(SOURCES))
POINTER, NUMBER, PLACE = ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)
FUNCTIONS = {
    "snapshot_begin": (POINTER, (ctypes.c_uint64,)),
    "snapshot_feed": (NUMBER, (POINTER, ctypes.c_char_p, ctypes.c_size_t)),
    "snapshot_rest": (None, (POINTER,)),
    "snapshot_place": (ctypes.c_uint64, (POINTER,)),
    "snapshot_has_notes": (NUMBER, (POINTER,)),
    "snapshot_column": (ctypes.c_uint64, (POINTER, NUMBER, PLACE)),
    "snapshot_drop": (None, (POINTER, NUMBER)),
    "snapshot_end": (None, (POINTER,)),
}


def library() -> ctypes.CDLL | None:
    """Return the compiled reader, built if need be; None where it cannot be had."""
    settings = os.environ
    return _library(*map(settings.get, ("XDG_CACHE_HOME", "CC", "PATH")))


@cache
def _library(base: str | None, *_: str | None) -> ctypes.CDLL | None:
    """Build and load it, anew where the settings by which a compiler is found are others."""
    try:
        return loaded(_built(Path(base) if base else Path.home() / ".cache"))
    except (OSError, InputError, ProbeError, RuntimeError, AttributeError):
        return None


def loaded(path: Path) -> ctypes.CDLL:
    """Open a built library and say what its functions take."""
    found = ctypes.CDLL(str(path))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def sources() -> list[Path]:
    """Return the files that are compiled."""
    return sorted(SOURCES.glob("*.c"))


def _built(base: Path) -> Path:
    compiler = compiling.find_compiler()
    digest = hashlib.sha256("\0".join((compiler, *FLAGS, platform.machine())).encode())
    for path in (*sources(), *sorted(SOURCES.glob("*.h"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = base / "oomdoctor" / "snapshot" / digest.hexdigest()[:24]
    if (folder / LIBRARY).is_file():
        return folder / LIBRARY
    if sys.platform == "win32":
        raise InputError("the compiled reader is not built on Windows")
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder))
    try:
        compiling.link(compiler, sources(), unfinished / LIBRARY, FLAGS)
        (unfinished / LIBRARY).replace(folder / LIBRARY)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder / LIBRARY
