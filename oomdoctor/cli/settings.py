"""Settings of a project: `[tool.oomdoctor]` in the nearest pyproject.toml.

Sample:

    [tool.oomdoctor]
    rules = ["ops/oom-rules"]
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "[tool.oomdoctor]"
KNOWN = ("rules",)


def rule_directories(start: Path | None = None) -> tuple[str, ...]:
    """Return the rule directories that the nearest pyproject.toml names, as paths that exist."""
    found = find_settings(os.fspath(start or os.getcwd()))
    if found is None:
        return ()
    from pathlib import Path

    path = Path(found)
    table = read_table(path)
    unknown = sorted(set(table) - set(KNOWN))
    if unknown:
        raise InputError(
            f"unknown setting {unknown[0]!r} in {TABLE}",
            location=Location(path=_shown(path)),
            hint=f"known: {', '.join(KNOWN)}",
        )
    return tuple(_directory(entry, path) for entry in _entries(table.get("rules", []), path))


def find_settings(start: str) -> str | None:
    """Return the nearest pyproject.toml upward from `start` that has our table."""
    folder = os.path.abspath(start)
    while True:
        path = os.path.join(folder, "pyproject.toml")
        try:
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    return path if TABLE in file.read() else None
        except OSError:
            return None
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def read_table(path: Path) -> dict[str, object]:
    """Parse the file and return our table."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"not valid TOML: {error}", location=Location(path=_shown(path))
        ) from error
    table = whole.get("tool", {}).get("oomdoctor", {})
    return dict(table)


def _entries(value: object, path: Path) -> list[str]:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return value
    raise InputError(
        "`rules` must be a list of directories",
        location=Location(path=_shown(path)),
        hint='write rules = ["my-rules"]',
    )


def _directory(entry: str, path: Path) -> str:
    folder = path.parent / entry
    if not folder.is_dir():
        raise InputError(
            f"the rule directory {entry!r} does not exist",
            location=Location(path=_shown(path)),
            hint="paths are relative to the pyproject.toml",
        )
    return _shown(folder)


def _shown(path: Path) -> str:
    """Name a path as seen from the working directory, where it lies below it."""
    here = os.getcwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
