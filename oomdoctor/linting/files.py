"""The files of a lint run as they are read: text, dialect, readings, or why it cannot be read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.evidence.source import read_source
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from oomdoctor.configs.dialect import ConfigReading

SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".py", ".ipynb", ".sh", ".bash", ".sbatch", ".slurm")
"""What a folder is searched for."""
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
NO_DIALECT = ("notes", "shell")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFile:
    """One input: its text and readings; `fault` says why it could not be read."""

    path: str
    text: str = ""
    readings: tuple[ConfigReading, ...] = ()
    notes: tuple[str, ...] = ()
    fault: InputError | None = None

    @property
    def dialect(self) -> str | None:
        """Return the dialect of the file, None where it was not recognised."""
        for reading in self.readings:
            if reading.dialect not in NO_DIALECT:
                return reading.dialect
        commands = any(reading.dialect == "shell" and reading.facts for reading in self.readings)
        return "shell" if commands else None

    @property
    def rows(self) -> list[str]:
        """Return the lines of the file."""
        return self.text.split("\n")


def read_file(path: str, *, stdin: BinaryIO | None = None, text: str | None = None) -> LintFile:
    """Read one file; `text` stands for its content where that has been changed in memory."""
    from oomdoctor.configs.reader import read_config

    try:
        notes: tuple[str, ...] = ()
        if text is None:
            source = read_source(path, stdin=stdin)
            text, notes = source.text, source.notes
        name = "<stdin>" if path == "-" else path
        readings = read_config(text, name=name, path=None if path == "-" else path)
    except InputError as fault:
        return LintFile(path=path, text=text or "", fault=fault)
    said = (*notes, *(note for reading in readings for note in reading.notes))
    return LintFile(path=path, text=text, readings=readings, notes=tuple(dict.fromkeys(said)))


def paths_in(given: Sequence[str]) -> tuple[str, ...]:
    """Return the files that are meant: folders are searched for configs, scripts and notebooks."""
    found: dict[str, None] = {}
    for path in given:
        if path != "-" and os.path.isdir(path):
            found |= dict.fromkeys(_below(path))
        else:
            found[path] = None
    return tuple(found)


def _below(folder: str) -> list[str]:
    paths: list[str] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED
        )
        paths += (os.path.join(where, name) for name in sorted(names) if name.endswith(SUFFIXES))
    return paths
