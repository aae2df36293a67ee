"""The parts of the library in C that need no header of CUDA, compiled for tests."""

from __future__ import annotations

import ctypes
import shutil
import sys
from itertools import count
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.virtual.build import SOURCES
from oomdoctor.virtual.compiling import find_compiler, link

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CORE = (
    *("settings", "usage", "cards", "values", "host", "attributes", "report", "nvml"),
    *("order", "ranks", "transfers", "reductions"),
)
STRICT = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DVC_CUDA_MAJOR=13", "-lpthread")


@pytest.fixture(scope="session")
def compiler() -> str:
    """A C compiler on Linux."""
    if sys.platform != "linux":
        pytest.skip("the library is for Linux alone")
    try:
        return find_compiler()
    except InputError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="session")
def core_library(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core as a file."""
    path = tmp_path_factory.mktemp("core") / "core.so"
    sources = [SOURCES / f"{name}.c" for name in CORE]
    link(compiler, sources, path, ["-I", str(SOURCES), *STRICT])
    return path


@pytest.fixture
def core(
    core_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., ctypes.CDLL]:
    """Load the core with settings: `core(TOTAL_BYTES=1 << 30)`; each has a state of its own."""
    numbers = count()

    def load(**settings: object) -> ctypes.CDLL:
        for name, value in settings.items():
            monkeypatch.setenv(f"OOMDOCTOR_VIRTUAL_{name}", str(value))
        own = tmp_path / f"core{next(numbers)}.so"
        shutil.copy(core_library, own)
        loaded = ctypes.CDLL(str(own))
        for name in ("vc_used", "vc_block_of"):
            getattr(loaded, name).restype = ctypes.c_size_t
        for name in ("vc_reserve_addresses", "vc_host_allocate"):
            getattr(loaded, name).restype = ctypes.c_void_p
        return loaded

    return load
