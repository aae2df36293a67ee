"""Settings of a project: `[tool.oomdoctor]` in the nearest pyproject.toml.

Sample:

    [tool.oomdoctor]
    rules = ["ops/oom-rules"]
"""

from __future__ import annotations

import sys
from pathlib import Path

from oomdoctor.errors import InputError, Location

TABLE = "[tool.oomdoctor]"
KNOWN = ("rules",)


def rule_directories(start: Path | None = None) -> tuple[str, ...]:
    """Return the rule directories that the nearest pyproject.toml names, as paths that exist."""
    path = find_settings(start or Path.cwd())
    if path is None:
        return ()
    table = read_table(path)
    unknown = sorted(set(table) - set(KNOWN))
    if unknown:
        raise InputError(
            f"unknown setting {unknown[0]!r} in {TABLE}",
            location=Location(path=_shown(path)),
            hint=f"known: {', '.join(KNOWN)}",
        )
    return tuple(_directory(entry, path) for entry in _entries(table.get("rules", []), path))


def find_settings(start: Path) -> Path | None:
    """Return the nearest pyproject.toml upward from `start` that has our table."""
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        try:
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                return path if TABLE in text else None
        except OSError:
            return None
    return None


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
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
