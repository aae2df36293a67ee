"""The runs of a folder in a line each, from what their run.json tells; and their housekeeping."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.record import dataclass
from oomdoctor.recorder.bundle import is_alive, read_bundle, read_told
from oomdoctor.recorder.outcome import UNKNOWN, outcome_of
from oomdoctor.recorder.places import bundles, finite

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run in a list; `size_bytes` is what its bundle takes on the disk."""

    id: str
    folder: Path
    command: tuple[str, ...]
    started: str
    outcome: str
    seconds: float | None = None
    exit_code: int | None = None
    cause: str | None = None
    peak_bytes: int | None = None
    size_bytes: int = 0


def listed(runs: Path) -> list[Listed]:
    """Return the runs of a folder, the newest first; a damaged one is listed as such."""
    return [_one(folder) for folder in bundles(runs)]


def delete(folders: Iterable[Path]) -> int:
    """Delete bundles that are not being written, and return the bytes that were freed."""
    freed = 0
    for folder in folders:
        if is_recorded(folder):
            raise InputError(f"{folder.name} is still recorded", hint="end its command first")
        freed += size_of(folder)
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise InputError(f"cannot delete {folder}: {error.strerror}") from error
    return freed


def is_recorded(folder: Path) -> bool:
    """Say whether a run still goes on; a damaged one does not."""
    return is_alive(_told(folder))


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a bundle."""
    return sum(one.lstat().st_size for one in folder.rglob("*") if not one.is_dir())


def _one(folder: Path) -> Listed:
    told = _told(folder)
    command, seconds, code = told.get("command"), told.get("seconds"), told.get("exit_code")
    cause, peak = told.get("cause"), told.get("peak_bytes")
    outcome = told.get("outcome")
    if not isinstance(outcome, str):
        outcome = outcome_of(read_bundle(folder)).word if told else UNKNOWN
    return Listed(
        id=folder.name,
        folder=folder,
        command=tuple(map(str, command)) if isinstance(command, list) else (),
        started=str(told.get("started") or ""),
        outcome=outcome,
        seconds=finite(seconds),
        exit_code=code if isinstance(code, int) else None,
        cause=cause if isinstance(cause, str) else None,
        peak_bytes=peak if isinstance(peak, int) else None,
        size_bytes=size_of(folder),
    )


def _told(folder: Path) -> dict[str, object]:
    try:
        return read_told(folder)
    except InputError:
        return {}
