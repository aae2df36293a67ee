"""The files of a lint run as they are read: text, dialect, readings, or why it cannot be read."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location, SizeError
from oomdoctor.evidence.source import STDIN_ID
from oomdoctor.linting.content import content_of
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.linting.content import Stored

SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".py", ".ipynb", ".sh", ".bash", ".sbatch", ".slurm")
"""What a folder is searched for."""
LOGS = (".log", ".out", ".err")
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
NO_DIALECT = ("notes", "shell")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFile:
    """One input: its text and readings; `fault` says why it could not be read.

    `stored` says how its text is written; None where it cannot be, as that of standard input.
    `notes` are about its bytes.
    """

    path: str
    text: str = ""
    readings: tuple[ConfigReading, ...] = ()
    notes: tuple[str, ...] = ()
    fault: InputError | None = None
    stored: Stored | None = None

    @property
    def dialect(self) -> str | None:
        """Return the dialect of the file, None where it was not recognised."""
        for reading in self.readings:
            if reading.dialect not in NO_DIALECT:
                return reading.dialect
        commands = any(reading.dialect == "shell" and reading.facts for reading in self.readings)
        return "shell" if commands else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what is to be said of its bytes and of how it was read, each once."""
        said = (note for reading in self.readings for note in reading.notes)
        return tuple(dict.fromkeys((*self.notes, *said)))

    @property
    def rows(self) -> list[str]:
        """Return the lines of the file."""
        return self.text.split("\n")


def read_file(path: str, *, stdin: BinaryIO | None = None, text: str | None = None) -> LintFile:
    """Read one file, `-` is `stdin`; `text` stands for its content where that is at hand."""
    name = STDIN_ID if path == "-" else path
    if text is not None:
        return read_text(LintFile(path=name), text)
    try:
        content = content_of(path, stdin=stdin)
    except InputError as fault:
        return LintFile(path=name, fault=fault)
    return read_text(LintFile(path=name, notes=content.notes, stored=content.stored), content.text)


def read_text(file: LintFile, text: str) -> LintFile:
    """Return a file with another text; what it says of itself by name and encoding stays."""
    from oomdoctor.configs.reader import read_config, suffix_of

    bare = replace(file, text=text, readings=(), fault=None)
    if suffix_of(file.path) in LOGS:
        told = f"{file.path}: not looked at: a log, which `oomdoctor diagnose` reads"
        return replace(bare, notes=(*file.notes, told))
    try:
        path = None if file.path == STDIN_ID else file.path
        readings = read_config(text, name=file.path, path=path)
    except InputError as fault:
        why = _no_fault(text, fault)
        if why is not None:
            return replace(bare, notes=(*file.notes, f"{file.path}: not looked at: {why}"))
        return replace(bare, fault=fault)
    read = replace(bare, readings=readings)
    return replace(read, fault=_toml_fault(read)) if file.path.endswith(".toml") else read


def _no_fault(text: str, fault: InputError) -> str | None:
    """Say why a file that could not be read may be in order all the same; None where it is not."""
    if isinstance(fault, SizeError):
        return f"{fault.message}: too large for a config"
    if "{%" in text or "{{" in text:
        return "a template, which is no config before it is filled in"
    rows = text.lstrip().split("\n", 2)
    if len(rows) > 1 and all(row.strip().startswith("{") and _is_json(row) for row in rows[:2]):
        return "JSON lines, which are data"
    return None


def _is_json(row: str) -> bool:
    try:
        json.loads(row)
    except (ValueError, RecursionError):
        return False
    return True


def _toml_fault(file: LintFile) -> InputError | None:
    """Return what is wrong with the config of a framework that is read, but is no TOML."""
    from oomdoctor.configs import toml_scan
    from oomdoctor.configs.setting import SyntaxFault, TooMuch

    if file.dialect is None:
        return None
    try:
        toml_scan.load(file.text)
    except TooMuch:
        return None
    except SyntaxFault as fault:
        place = Location(path=file.path, line=fault.line, column=fault.column)
        return InputError(fault.message, location=place)
    return None


def paths_in(given: Sequence[str]) -> tuple[str, ...]:
    """Return the files that are meant, each once; folders are searched for what may be a config."""
    found: dict[str, str] = {}
    for path in given:
        listed = _below(path) if path != "-" and os.path.isdir(path) else [path]
        for one in listed:
            found.setdefault(one if one == "-" else os.path.realpath(one), one)
    return tuple(found.values())


def _below(folder: str) -> list[str]:
    paths: list[str] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED
        )
        inside = (os.path.join(where, name) for name in sorted(names) if name.endswith(SUFFIXES))
        paths += filter(_is_file, inside)
    return paths


def _is_file(path: str) -> bool:
    """Say whether it is a file: a pipe may never end, and a link may lead nowhere."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
