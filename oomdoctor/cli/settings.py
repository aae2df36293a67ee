"""Settings of a project: the nearest .oomdoctor.toml, or `[tool.oomdoctor]` in pyproject.toml.

Sample of a pyproject.toml:

    [tool.oomdoctor]
    rules = ["ops/oom-rules"]

    [tool.oomdoctor.lint]
    select = ["COR2", "MEM1"]

In .oomdoctor.toml the same stands without `tool.oomdoctor`: `rules` at the top, `[lint]` below. Of
two files in one folder .oomdoctor.toml is read.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROJECT = "pyproject.toml"
OWN = ".oomdoctor.toml"
TABLE = "[tool.oomdoctor]"
KNOWN = ("rules", "lint")
_ANY_TABLE = "[tool.oomdoctor"


def rule_directories(start: Path | None = None) -> tuple[str, ...]:
    """Return the rule directories that the nearest settings name, as paths that exist."""
    found = find_settings(os.fspath(start or os.getcwd()))
    if found is None:
        return ()
    from pathlib import Path

    path = Path(found)
    table = read_table(path)
    check_names(table, KNOWN, path, where=_table_of(path))
    return tuple(_directory(entry, path) for entry in _entries(table.get("rules", []), path))


def find_settings(start: str) -> str | None:
    """Return the nearest settings upward from `start`: our own file, or a pyproject.toml.

    The nearest pyproject.toml ends the search, whether it has our table or not: what lies above
    belongs to another project.
    """
    folder = os.path.abspath(start)
    while True:
        own = os.path.join(folder, OWN)
        path = os.path.join(folder, PROJECT)
        try:
            if os.path.isfile(own):
                return own
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    return path if _ANY_TABLE in file.read() else None
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
        raise faulty(f"not valid TOML: {error}", path) from error
    if path.name == OWN:
        return dict(whole)
    tool = whole.get("tool", {})
    table = tool.get("oomdoctor", {}) if isinstance(tool, dict) else {}
    return dict(table) if isinstance(table, dict) else {}


def _table_of(path: Path) -> str:
    return OWN if path.name == OWN else TABLE


def check_names(table: dict[str, object], known: Sequence[str], path: Path, *, where: str) -> None:
    """Refuse a table with a name that no setting has, with the one that may be meant."""
    unknown = sorted(set(table) - set(known))
    if not unknown:
        return
    from difflib import get_close_matches

    near = get_close_matches(unknown[0], known, n=1)
    meant = f"did you mean {near[0]!r}? it knows" if near else "known:"
    message = f"unknown setting {unknown[0]!r} in {where}"
    raise faulty(message, path, hint=f"{meant} {', '.join(known)}")


def faulty(message: str, path: Path, *, hint: str | None = None) -> InputError:
    """Return the error for settings that cannot be used, with their place."""
    return InputError(message, location=Location(path=shown(path)), hint=hint)


def _entries(value: object, path: Path) -> list[str]:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return value
    raise faulty("`rules` must be a list of directories", path, hint='write rules = ["my-rules"]')


def _directory(entry: str, path: Path) -> str:
    folder = path.parent / entry
    if not folder.is_dir():
        raise faulty(
            f"the rule directory {entry!r} does not exist",
            path,
            hint=f"paths are relative to the {path.name}",
        )
    return shown(folder)


def shown(path: Path) -> str:
    """Name a path as seen from the working directory, where it lies below it."""
    here = os.getcwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
