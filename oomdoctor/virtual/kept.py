"""Keeps what was compiled, in the user's cache, in a folder named after all that it depends on.

folder = cache_folder("virtual", environment) / name_of(files, words)
made_once(folder, "libcuda.so.1", lambda unfinished: ...)
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_UNFINISHED = "unfinished-"


def cache_folder(kind: str, environment: Mapping[str, str]) -> Path:
    """Return where a kind of builds is kept: in the user's cache, as the system has it."""
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "oomdoctor" / kind


def name_of(files: Iterable[Path], words: Iterable[str]) -> str:
    """Return the name of a build: it changes with its sources and with the words."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update("\0".join(words).encode())
    return digest.hexdigest()[:24]


def made_once(folder: Path, proof: str, make: Callable[[Path], None]) -> Path:
    """Return a folder, made by `make` unless it has the file that proves it finished."""
    if (folder / proof).is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.parent))
    try:
        make(unfinished)
        _move(unfinished, folder, proof)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _move(unfinished: Path, folder: Path, proof: str) -> None:
    """Put a finished build in its place, unless another process was quicker."""
    try:
        unfinished.rename(folder)
    except OSError:
        if (folder / proof).is_file():
            return
        # somebody cleared the cache while a program ran, which then put something there
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
