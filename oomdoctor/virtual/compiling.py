"""Finds and runs the C compiler of the system."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, ProbeError
from oomdoctor.virtual.wheels import FALL_BACK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

COMPILERS = ("cc", "gcc", "clang")
_LONGEST_S = 300
_MOST_MESSAGES = 3000


def find_compiler(environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of a C compiler: the one $CC names, else the first that is there."""
    wanted = environment.get("CC", "").split()[:1]
    for name in (*wanted, *COMPILERS):
        found = shutil.which(name, path=environment.get("PATH"))
        if found:
            return found
    raise InputError(
        f"no C compiler: none of {', '.join((*wanted, *COMPILERS))} is in the path",
        hint="install gcc or clang (apt-get install gcc libc6-dev), or name one in the environment "
        f"variable CC. Without one, {FALL_BACK}",
    )


def preprocess(compiler: str, source: Path, flags: Sequence[str]) -> str:
    """Return a C file with all headers put in and all macros applied."""
    return _run([compiler, "-E", "-P", "-w", *flags, str(source)])


def link(compiler: str, sources: Sequence[Path], target: Path, flags: Sequence[str]) -> None:
    """Make a shared library of C files."""
    command = [compiler, "-shared", "-fPIC", "-O1", *flags]
    _run([*command, "-o", str(target), *map(str, sources)])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProbeError(
            f"the C compiler does not run: {error}",
            hint=f"name another in the environment variable CC. Without one, {FALL_BACK}",
        ) from error
    if done.returncode:
        hint = "the headers of this version of CUDA may differ from those that are known"
        if "stdio.h" in done.stderr or "stddef.h" in done.stderr:
            hint = "the C library's own headers lack: apt-get install libc6-dev"
        raise ProbeError(
            f"{command[0]} failed on the virtual card's sources:\n{done.stderr[:_MOST_MESSAGES]}",
            hint=f"{hint}. Without a virtual card, {FALL_BACK}",
        )
    return done.stdout
