"""The compiled reader of snapshots: built once by the system's C compiler, then kept.

It lies under ~/.cache/oomdoctor/snapshot, in a folder that is named after its sources and the
compiler. Where there is no compiler, or nothing can be kept, snapshots are read in Python.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from pathlib import Path

from oomdoctor.errors import InputError, ProbeError
from oomdoctor.virtual import compiling, kept

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
def _library(*_: str | None) -> ctypes.CDLL | None:
    """Build and load it, anew where the settings by which a compiler is found are others."""
    try:
        return loaded(_built())
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


def _built() -> Path:
    compiler = compiling.find_compiler()
    files = (*sources(), *SOURCES.glob("*.h"))
    name = kept.name_of(files, (compiler, *FLAGS, platform.machine()))
    folder = kept.cache_folder("snapshot", os.environ) / name
    if sys.platform == "win32":
        raise InputError("the compiled reader is not built on Windows")

    def link(to: Path) -> None:
        compiling.link(compiler, sources(), to / LIBRARY, FLAGS)

    return kept.made_once(folder, LIBRARY, link) / LIBRARY
