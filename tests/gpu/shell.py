"""Runs `oomdoctor` as somebody would who has no card: in a shell that knows of no virtual one."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import OomdoctorError
from oomdoctor.record import NamedTuple
from oomdoctor.virtual.session import played_for
from tests.conftest import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_S = 570
_OF_A_CARD = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "TRITON_", "TORCHINDUCTOR_")
_QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Said(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    output: str
    errors: str


def skip_without_libraries() -> Path:
    """Return the folder of the libraries that play a card; skip where they cannot be built."""
    try:
        return played_for(sys.executable, base=environment()).libraries
    except OomdoctorError as error:
        pytest.skip(error.message)


def environment() -> dict[str, str]:
    """Return an environment without a virtual card, in which this checkout is imported."""
    kept = {
        name: value
        for name, value in clean_environment().items()
        if not name.startswith(_OF_A_CARD) and name != "CUDA_VISIBLE_DEVICES"
    }
    return {**kept, **_QUIET, "PYTHONPATH": str(ROOT)}


def oomdoctor(folder: Path, *words: str, **more: str) -> Said:
    """Run a command of ours in a folder; `more` are variables of its environment."""
    return shell(folder, sys.executable, "-m", "oomdoctor", *words, **more)


def shell(folder: Path, *words: str, **more: str) -> Said:
    """Run any command in a folder."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**environment(), **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LONGEST_S,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def program(folder: Path, text: str, name: str = "program.py") -> tuple[str, str]:
    """Write a program and return the command that runs it."""
    (folder / name).write_text(text, encoding="utf-8")
    return sys.executable, name


def bundle_in(folder: Path) -> Path:
    """Return the one bundle that a run left in a folder."""
    (found,) = (folder / ".oomdoctor" / "runs").iterdir()
    return found
