"""The library in C fits the headers of the CUDA wheels of this environment, where it has some."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.virtual.build import DRIVER, REST, SOURCES, build
from oomdoctor.virtual.compiling import link
from oomdoctor.virtual.run import site_packages_of
from oomdoctor.virtual.symbols import exported
from oomdoctor.virtual.wheels import Wheels, wheels_in

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_FILE = 300
C_FILES = sorted(SOURCES.rglob("*.[ch]"))
APART = ("nvml.c", "nvrtc.c")


@pytest.fixture(scope="module")
def wheels() -> Wheels:
    """The wheels of this environment, or of the Python that a variable names."""
    try:
        return wheels_in(site_packages_of(os.environ.get("OOMDOCTOR_CUDA_PYTHON", sys.executable)))
    except InputError as error:
        pytest.skip(error.message)


@pytest.mark.parametrize("path", C_FILES, ids=lambda path: path.name)
def test_a_file_says_what_it_is_for_and_is_no_longer_than_others(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert lines[0].startswith("/* ")
    assert len(lines) <= LONGEST_FILE
    assert max(map(len, lines)) <= 120


def test_no_warning_is_left(wheels: Wheels, compiler: str, tmp_path: Path) -> None:
    sources = [path for path in sorted(SOURCES.glob("*.c")) if path.name not in APART]
    theirs = [flag for path in wheels.includes for flag in ("-isystem", str(path))]
    ours = ["-I", str(SOURCES), "-isystem", str(SOURCES / "stand_in")]
    strict = ["-Wall", "-Wextra", "-Wno-deprecated-declarations", "-Werror"]

    link(compiler, sources, tmp_path / "all.so", [*ours, *theirs, *strict])


def test_nothing_that_torch_calls_is_left_to_the_real_libraries(
    wheels: Wheels, compiler: str, tmp_path: Path
) -> None:
    del compiler
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path)}

    folder = build(wheels.site, environment=environment)

    ours = exported(folder / DRIVER) | exported(folder / REST)
    theirs: set[str] = set()
    for name in ("libcudart.so", "libcublas", "libnccl.so"):
        for path in wheels.libraries(name):
            theirs |= exported(path)
    public = {one for one in theirs if one.startswith(("cuda", "cublas", "nccl"))}
    assert public - ours == set()
