"""Tests of this folder need a CUDA device, real or virtual (.ci/virtual); skipped without one."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent


def _wanted(config: pytest.Config) -> bool:
    return "gpu" in str(config.option.markexpr).replace("not gpu", "")


@pytest.hookimpl
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files alone unless they are asked for: importing torch alone takes seconds."""
    del collection_path
    return None if _wanted(config) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs a device; the libraries' own warnings are none of ours."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture
def torch() -> Iterator[Any]:
    """torch, with a device whose allocator holds nothing and has counted nothing."""
    library = pytest.importorskip("torch")
    if not library.cuda.is_available():
        pytest.skip("torch finds no CUDA device, real or virtual")
    gc.collect()
    library.cuda.init()
    library._C._cuda_clearCublasWorkspaces()
    library.cuda.empty_cache()
    library.cuda.reset_peak_memory_stats()
    yield library
    library.cuda.memory._record_memory_history(enabled=None)
    library.cuda.empty_cache()
