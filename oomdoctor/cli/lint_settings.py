"""Settings of `oomdoctor lint`: the table `[tool.oomdoctor.lint]`, or `[lint]` in .oomdoctor.toml.

Sample:

    [tool.oomdoctor.lint]
    select = ["COR2", "MEM1"]          # codes, starts of codes, names of rules
    ignore = ["no-seed"]
    fail-on = "error"                  # info, warning, error, never
    gpu = "RTX 4090"
    versions = { transformers = "4.46.3" }
    baseline = ".oomdoctor-baseline.json"

    [tool.oomdoctor.lint.per-file-ignores]
    "examples/*" = ["QLT5"]

What the command line says takes the place of the setting of the same name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.cli.options import SEVERITIES
from oomdoctor.cli.settings import OWN, check_names, faulty, find_settings, read_table, shown
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FAIL_ON = (*SEVERITIES, "never")
TABLE = "[tool.oomdoctor.lint]"
KNOWN = ("select", "ignore", "fail-on", "gpu", "versions", "per-file-ignores", "baseline")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """What a project has settled; `folder` is where its patterns and paths start from."""

    folder: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    gpu: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    baseline: str | None = None


def lint_settings(start: Path | None = None) -> LintSettings:
    """Return what the nearest settings say about lint; nothing where there are none."""
    found = find_settings("." if start is None else os.fspath(start))
    if found is None:
        return LintSettings()
    from pathlib import Path

    path = Path(found)
    table = read_table(path).get("lint", {})
    if not isinstance(table, dict):
        raise faulty("`lint` must be a table", path, hint=f"write {TABLE}")
    check_names(table, KNOWN, path, where="[lint]" if path.name == OWN else TABLE)
    return LintSettings(
        folder=shown(path.parent),
        select=_names(table, "select", path),
        ignore=_names(table, "ignore", path),
        fail_on=_severity(table, path),
        gpu=_text(table, "gpu", path),
        versions=_versions(table, path),
        per_file_ignores=_ignores(table, path),
        baseline=_beside(_text(table, "baseline", path), path),
    )


def _names(table: Mapping[str, object], key: str, path: Path) -> tuple[str, ...]:
    value = table.get(key, [])
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return tuple(value)
    raise faulty(f"`{key}` must be a list of rules", path, hint=f'write {key} = ["MEM1"]')


def _text(table: Mapping[str, object], key: str, path: Path) -> str | None:
    value = table.get(key)
    if value is None or isinstance(value, str):
        return value
    raise faulty(f"`{key}` must be a text", path, hint=f'write {key} = "..."')


def _severity(table: Mapping[str, object], path: Path) -> str | None:
    value = _text(table, "fail-on", path)
    if value is None or value in FAIL_ON:
        return value
    raise faulty(f"`fail-on` cannot be {value!r}", path, hint=f"one of {', '.join(FAIL_ON)}")


def _versions(table: Mapping[str, object], path: Path) -> dict[str, str]:
    value = table.get("versions", {})
    if isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
        return value
    raise faulty(
        "`versions` must be a table of texts",
        path,
        hint='write versions = { transformers = "4.46.3" }',
    )


def _ignores(table: Mapping[str, object], path: Path) -> dict[str, tuple[str, ...]]:
    value = table.get("per-file-ignores", {})
    if not isinstance(value, dict):
        hint = 'write per-file-ignores = { "examples/*" = ["QLT5"] }'
        raise faulty("`per-file-ignores` must be a table", path, hint=hint)
    return {pattern: _names(value, pattern, path) for pattern in value}


def _beside(name: str | None, path: Path) -> str | None:
    """Return a path that is relative to the settings as seen from the working directory."""
    return None if name is None else shown(path.parent / name)
