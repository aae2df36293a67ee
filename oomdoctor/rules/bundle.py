"""The bundle: all rules compiled to one JSON file, so that start-up parses no YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from oomdoctor.errors import RuleError
from oomdoctor.rules.nodes import compose, data_of
from oomdoctor.rules.shape import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.rules.nodes import Data

CAUSES, PRIORS, BUNDLE = "causes.yaml", "priors.yaml", "bundle.json"


def rules_dir() -> Path:
    """Return where the rules are: inside an installed package, else beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_rules"
    return installed if installed.is_dir() else package.parent / "rules"


def rule_files(directory: Path) -> list[Path]:
    """Return the rule files of a directory (`<family>/<CODE>-<name>.yaml`, or flat), sorted."""
    names = (CAUSES, PRIORS)
    return sorted(path for path in directory.rglob("*.yaml") if path.name not in names)


def read_causes(directory: Path) -> dict[str, Cause]:
    """Read the vocabulary of causes with the prior and its reason of each."""
    priors = cast("Mapping[str, Mapping[str, Data]]", _read(directory / PRIORS))
    causes = {}
    for entry in cast("list[Mapping[str, Data]]", _read(directory / CAUSES)):
        name = str(entry["cause"])
        row = priors.get(name, {})
        near = entry.get("near") or []
        causes[name] = Cause(
            id=name,
            resource=str(entry["resource"]),
            definition=str(entry["definition"]),
            tells_apart=str(entry["tells_apart"]),
            near=tuple(str(word) for word in near) if isinstance(near, list) else (),
            prior=float(cast("float", row.get("prior", 0.001))),
            prior_reason=str(row.get("reason", "")),
        )
    return causes


def _read(path: Path) -> Data:
    node, problems = compose(path.read_text(encoding="utf-8"), path=str(path))
    if node is None or problems:
        first = problems[0]
        raise RuleError(first.message, location=first.location)
    return data_of(node)
