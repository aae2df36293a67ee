"""Tests of this folder need a real CUDA device: `pytest -m gpu_real tests/gpu_real` runs them.

They are skipped, and say why, without one, on a virtual one, and where none can be built.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.errors import OomdoctorError
from oomdoctor.virtual.build import build
from oomdoctor.virtual.run import site_packages_of
from tests.gpu import scripts

HERE = Path(__file__).parent
LEAST_FREE_BYTES = 8 << 30
"""What the largest of the scripts takes, its context and some room."""


@pytest.hookimpl
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files alone unless they are asked for: importing torch alone takes seconds."""
    del collection_path
    asked = "gpu_real" in str(config.option.markexpr).replace("not gpu_real", "")
    return None if asked else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs a real device; warnings of libraries are none of ours."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu_real)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def torch() -> Any:
    """Return torch with a real card, in an environment in which a virtual one can be had."""
    library = pytest.importorskip("torch")
    if scripts.IS_VIRTUAL:
        pytest.skip("a real card is compared with a virtual one, and this one is virtual")
    if not library.cuda.is_available():
        pytest.skip("torch finds no CUDA device; a real one is needed")
    if library.version.hip is not None:
        pytest.skip("this is torch's build for ROCm; only NVIDIA's cards can be played")
    free, _ = library.cuda.mem_get_info(0)
    if free < LEAST_FREE_BYTES:
        pytest.skip(f"{free >> 20} MiB are free on the card, {LEAST_FREE_BYTES >> 20} are needed")
    try:
        build(site_packages_of(sys.executable))
    except OomdoctorError as error:
        pytest.skip(f"no virtual card can be built here: {error.message.partition(chr(10))[0]}")
    return library
