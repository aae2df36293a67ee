"""The bundles: rules compiled to JSON files, so that start-up parses no YAML.

`bundle.json` holds what `diagnose` asks, `lint.json` what `lint` asks.

python -m oomdoctor.rules.bundle            writes rules/bundle.json and rules/lint.json
python -m oomdoctor.rules.bundle --check    exits 1 where it differs from the YAML
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from oomdoctor.errors import RuleError
from oomdoctor.rules import stored
from oomdoctor.rules.shape import Cause
from oomdoctor.rules.stored import BUNDLE, CAUSES, FORMAT, LINT, PRIORS, belongs, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.rules.nodes import Data
    from oomdoctor.rules.shape import Tree


def rules_dir() -> Path:
    """Return where the rules are: inside an installed package, else beside it in a checkout."""
    return Path(stored.home())


def rule_files(directory: Path) -> list[Path]:
    """Return the rule files of a directory (`<family>/<CODE>-<name>.yaml`, or flat), sorted."""
    names = (CAUSES, PRIORS)
    return sorted(path for path in directory.rglob("*.yaml") if path.name not in names)


def build(directory: Path, bundle: str = BUNDLE) -> dict[str, Any]:
    """Compile the rules of a bundle; the first broken one is a RuleError.

    Paths are relative and rules sorted, so that equal rules give equal bundles everywhere.
    """
    from oomdoctor.rules.codec import Encoder, encode_cause, encode_fixes
    from oomdoctor.rules.evaluate import expressions_of
    from oomdoctor.rules.hints import hints_of
    from oomdoctor.rules.source import read_rule_file

    encoder = Encoder()
    patterns: set[str] = set()
    rules: list[dict[str, Any]] = []
    fixes: list[list[Any]] = []
    for path in rule_files(directory):
        if not belongs(path.name, bundle):
            continue
        source = read_rule_file(path)
        if source.rule is None:
            raise RuleError(source.problems[0].message, location=source.problems[0].location)
        rule = encoder.rule(source.rule)
        rules.append({**rule, "path": path.relative_to(directory).as_posix()})
        for expression in expressions_of(source.rule):
            patterns.update(patterns_in(expression.tree))
        fixes.append(encode_fixes(source.rule))
    return {
        "format": FORMAT,
        "files": fingerprints(directory, bundle),
        "causes": [
            encode_cause(cause) for cause in read_causes(directory).values() if bundle != LINT
        ],
        "patterns": hints_of(patterns),
        "leaves": encoder.leaves,
        "rules": rules,
        "fixes": fixes,
    }


def patterns_in(tree: Tree | str | float) -> Iterator[str]:
    """Yield the patterns of all `matches` in a compiled tree."""
    if isinstance(tree, list):
        if tree and tree[0] == "matches":
            yield str(tree[2])
        for part in tree:
            yield from patterns_in(part)


def fingerprints(directory: Path, bundle: str = BUNDLE) -> dict[str, list[int]]:
    """Return size and checksum of every YAML file, by which an edited one is noticed."""
    paths = [*rule_files(directory), directory / CAUSES, directory / PRIORS]
    paths = [path for path in paths if belongs(path.name, bundle)]
    return {
        path.relative_to(directory).as_posix(): fingerprint(path.read_bytes())
        for path in paths
        if path.exists()
    }


def bundle_text(directory: Path, bundle: str = BUNDLE) -> str:
    """Return a bundle as text, one rule per line so that changes can be read."""
    lines = []
    for name, value in build(directory, bundle).items():
        if isinstance(value, list):
            rows = ",\n".join(_compact(row) for row in value)
            lines.append(f"{_compact(name)}:[\n{rows}\n]")
        else:
            lines.append(f"{_compact(name)}:{_compact(value)}")
    return "{" + ",\n".join(lines) + "}\n"


def write(directory: Path) -> tuple[Path, ...]:
    """Write both bundles beside the rules."""
    paths = (directory / BUNDLE, directory / LINT)
    for path in paths:
        path.write_text(bundle_text(directory, path.name), encoding="utf-8")
    return paths


def is_current(directory: Path) -> bool:
    """Say whether the written bundle is what the YAML files compile to."""
    return all(
        path.exists() and path.read_text(encoding="utf-8") == bundle_text(directory, path.name)
        for path in (directory / BUNDLE, directory / LINT)
    )


def read_causes(directory: Path) -> dict[str, Cause]:
    """Read the vocabulary of causes with the prior and its reason of each."""
    priors = read_priors(directory)
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
            training=entry.get("training") is True,
            prior=float(cast("float", row.get("prior", 0.001))),
            prior_reason=str(row.get("reason", "")),
        )
    return causes


def read_priors(directory: Path) -> Mapping[str, Mapping[str, Data]]:
    """Read the table of priors: per cause how common it is, and why that is believed."""
    return cast("Mapping[str, Mapping[str, Data]]", _read(directory / PRIORS))


def _read(path: Path) -> Data:
    from oomdoctor.rules.nodes import compose, data_of

    node, problems = compose(path.read_text(encoding="utf-8"), path=str(path))
    if node is None or problems:
        first = problems[0]
        raise RuleError(first.message, location=first.location)
    return data_of(node)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(arguments: list[str]) -> int:
    """Write the bundle, or with `--check` compare it."""
    if "--check" in arguments:
        return 0 if is_current(rules_dir()) else 1
    write(rules_dir())
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
