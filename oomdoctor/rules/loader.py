"""The rules in force: the bundle, files changed since it was written, and users' directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoctor.errors import RuleError, UsageError
from oomdoctor.model.enums import Maturity
from oomdoctor.rules import bundle
from oomdoctor.rules.codec import decode_cause, decode_rule
from oomdoctor.rules.shape import RuleSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.rules.shape import Cause, Rule


def load_rules(
    extra: Sequence[str] = (), *, preview: bool = False, directory: Path | None = None
) -> RuleSet:
    """Return all rules in force; a broken one becomes a fault and the others stay.

    `extra` are directories (or files) of a user's own rules; a rule of theirs replaces the one
    with its code. Sandbox rules speak only with `preview`; deprecated ones never.
    """
    home = directory or bundle.rules_dir()
    faults: list[tuple[str, str]] = []
    causes, rules = _builtin(home, faults)
    for given in extra:
        path = Path(given)
        if not path.exists():
            raise UsageError(f"no rules at {given}", hint="give a directory of rule files")
        causes = {**causes, **_extra_causes(path, faults)}
        files = bundle.rule_files(path) if path.is_dir() else [path]
        rules.update(_compiled(files, faults, causes))
    kept = [rule for rule in rules.values() if _speaks(rule, preview=preview)]
    kept.sort(key=lambda rule: rule.code)
    return RuleSet(rules=tuple(kept), causes=causes, faults=tuple(faults))


def _speaks(rule: Rule, *, preview: bool) -> bool:
    if rule.maturity is Maturity.DEPRECATED:
        return False
    return preview or rule.maturity is not Maturity.SANDBOX


def _builtin(home: Path, faults: list[tuple[str, str]]) -> tuple[dict[str, Cause], dict[str, Rule]]:
    stored = _stored(home / bundle.BUNDLE)
    current = changed_files(home, stored)
    vocabulary = (bundle.CAUSES, bundle.PRIORS)
    if stored is None or current.intersection(vocabulary):
        causes = bundle.read_causes(home)
    else:
        causes = {value["id"]: decode_cause(value) for value in stored["causes"]}
    rules = {}
    for value, fixes in zip(stored["rules"], stored["fixes"], strict=True) if stored else ():
        if value["path"] not in current:
            rules[value["code"]] = decode_rule(value, fixes)
    edited = [home / name for name in sorted(current.difference(vocabulary))]
    present = [path for path in edited if path.exists()]
    if present:
        rules.update(_compiled(present, faults, causes))
    return causes, rules


def _stored(path: Path) -> dict[str, Any] | None:
    """Read the bundle; None where there is none, or one of another format."""
    try:
        head, fixes = bundle.split_fixes(path.read_text(encoding="utf-8"))
        stored = json.loads(head)
    except (OSError, ValueError):
        return None
    usable = isinstance(stored, dict) and stored.get("format") == bundle.FORMAT
    return {**stored, "fixes": fixes} if usable else None


def changed_files(home: Path, stored: dict[str, Any] | None) -> frozenset[str]:
    """Return the YAML files that are new, edited or gone since the bundle was written.

    Size first; the content is read only where a file is younger than the bundle. An installed
    package may hold the bundle alone.
    """
    known: dict[str, list[int]] = stored["files"] if stored else {}
    paths = bundle.rule_files(home)
    if stored and not paths:
        return frozenset()
    vocabulary = [home / name for name in (bundle.CAUSES, bundle.PRIORS) if (home / name).exists()]
    written = (home / bundle.BUNDLE).stat().st_mtime_ns if stored else 0
    names = {path.relative_to(home).as_posix(): path for path in (*paths, *vocabulary)}
    changed = {name for name in known if name not in names}
    for name, path in names.items():
        held = known.get(name)
        status = path.stat()
        if (
            held is None
            or status.st_size != held[0]
            or (status.st_mtime_ns > written and bundle.fingerprint(path.read_bytes()) != held)
        ):
            changed.add(name)
    return frozenset(changed)


def _compiled(
    paths: Iterable[Path], faults: list[tuple[str, str]], causes: dict[str, Cause]
) -> dict[str, Rule]:
    """Compile YAML files; what is wrong with one becomes a fault named by its code."""
    from oomdoctor.rules.source import read_rule_file

    rules: dict[str, Rule] = {}
    for path in paths:
        source = read_rule_file(path)
        code = path.name[:7]
        if source.rule is None:
            faults.append((code, "\n".join(str(problem) for problem in source.problems)))
        elif source.rule.cause is not None and source.rule.cause not in causes:
            at = source.places.get("cause", source.path)
            faults.append((code, f"{at}: {source.rule.cause!r} is not in causes.yaml"))
        else:
            rules[source.rule.code] = source.rule
    return rules


def _extra_causes(path: Path, faults: list[tuple[str, str]]) -> dict[str, Cause]:
    """Read a user's own vocabulary where their directory has one."""
    if not (path / bundle.CAUSES).exists():
        return {}
    try:
        return bundle.read_causes(path)
    except (RuleError, OSError, KeyError, TypeError, ValueError) as error:
        faults.append((bundle.CAUSES, f"{path / bundle.CAUSES}: {error}"))
        return {}
