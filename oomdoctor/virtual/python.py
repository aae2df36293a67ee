"""The environment of Python that a command runs in, and whether a virtual card can be put there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.virtual.wheels import SETUP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_BYTES = 512
_LAUNCHERS = ("env", "nice", "nohup", "stdbuf", "time", "taskset", "numactl")


def with_venv(venv: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which `python`, `torchrun` and the like are those of a venv."""
    folder = venv.expanduser().absolute()
    if not (folder / "bin" / "python").exists():
        raise InputError(f"{folder} is no virtual environment: it has no bin/python", hint=SETUP)
    path = f"{folder / 'bin'}{os.pathsep}{base.get('PATH', os.defpath)}"
    found = {**base, "PATH": path, "VIRTUAL_ENV": str(folder)}
    found.pop("PYTHONHOME", None)
    return found


def python_of(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the interpreter that a command starts: itself, of its first line, or the PATH's."""
    path = environment.get("PATH")
    for word in words:
        if Path(word).name in _LAUNCHERS or "=" in word or word.startswith("-") or word.isdecimal():
            continue
        found = shutil.which(word, path=path)
        if found is None:
            break
        if Path(found).name.startswith(("python", "pypy")):
            return found
        return _first_line(Path(found), path) or _of_path(path)
    return _of_path(path)


def _first_line(program: Path, path: str | None) -> str | None:
    """Return the Python that a script's first line names: `#!/venv/bin/python`."""
    try:
        with program.open("rb") as file:
            line = file.read(_MOST_BYTES).partition(b"\n")[0].decode("utf-8", "replace")
    except OSError:
        return None
    words = line[2:].split() if line.startswith("#!") else []
    named = [word for word in words if Path(word).name.startswith(("python", "pypy"))]
    return shutil.which(named[-1], path=path) if named else None


def _of_path(path: str | None) -> str:
    for name in ("python", "python3"):
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    raise InputError("there is no python in the PATH", hint=SETUP)
