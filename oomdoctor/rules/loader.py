"""The rules in force: the bundle, files changed since it was written, and users' directories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.errors import RuleError, UsageError
from oomdoctor.model.enums import Maturity
from oomdoctor.rules import patterns, stored
from oomdoctor.rules.codec import Decoder, decode_cause
from oomdoctor.rules.shape import RuleSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from oomdoctor.rules.shape import Cause, Rule


ALL = (stored.BUNDLE, stored.LINT)
"""Both bundles: for whatever shows rules instead of asking them."""


def load_rules(
    extra: Sequence[str] = (),
    *,
    preview: bool = False,
    directory: Path | None = None,
    bundles: Sequence[str] = (stored.BUNDLE,),
) -> RuleSet:
    """Return the rules in force; a broken one becomes a fault and the others stay.

    `bundles` says whose rules: those of `diagnose` (bundle.json), of `lint` (lint.json), or both.
    `extra` are directories (or files) of a user's own rules; a rule of theirs replaces the one
    with its code. Sandbox rules speak only with `preview`; deprecated ones never.
    """
    faults: list[tuple[str, str]] = []
    causes: dict[str, Cause] = {}
    rules: dict[str, Rule] = {}
    for name in bundles:
        more_causes, more_rules = _builtin(str(directory or stored.home()), faults, name)
        causes, rules = {**causes, **more_causes}, {**rules, **more_rules}
    for given in extra:
        if not os.path.exists(given):
            raise UsageError(f"no rules at {given}", hint="give a directory of rule files")
        from pathlib import Path

        from oomdoctor.rules import bundle

        path = Path(given)
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


def _builtin(
    home: str, faults: list[tuple[str, str]], bundle_name: str
) -> tuple[dict[str, Cause], dict[str, Rule]]:
    held = stored.read(home, bundle_name)
    changed = stored.changed(home, held, bundle_name)
    vocabulary = (stored.CAUSES, stored.PRIORS)
    causes: dict[str, Cause] = {}
    rules: dict[str, Rule] = {}
    if held is not None:
        causes = {value["id"]: decode_cause(value) for value in held.values["causes"]}
        patterns.learn(held.values["patterns"])
        decoder = Decoder(held.values["leaves"])
        for value, fixes in zip(held.values["rules"], held.fixes, strict=True):
            if value["path"] not in changed:
                rules[value["code"]] = decoder.rule(value, fixes)
    if held is None or changed:
        from pathlib import Path

        from oomdoctor.rules import bundle

        if held is None or changed.intersection(vocabulary):
            causes = bundle.read_causes(Path(home))
        edited = [Path(home, name) for name in sorted(changed.difference(vocabulary))]
        rules.update(_compiled([path for path in edited if path.exists()], faults, causes))
    return causes, rules


def _compiled(
    paths: Iterable[Path], faults: list[tuple[str, str]], causes: dict[str, Cause]
) -> dict[str, Rule]:
    """Compile YAML files; what is wrong with one becomes a fault named by its file."""
    from oomdoctor.rules.source import read_rule_file

    rules: dict[str, Rule] = {}
    for path in paths:
        source = read_rule_file(path)
        code = _label(path.name)
        if source.rule is None:
            faults.append((code, "\n".join(str(problem) for problem in source.problems)))
        elif source.rule.cause is not None and source.rule.cause not in causes:
            at = source.places.get("cause", source.path)
            faults.append((code, f"{at}: {source.rule.cause!r} is not in causes.yaml"))
        else:
            rules[source.rule.code] = source.rule
    return rules


def _label(name: str) -> str:
    """Return the code that a file's name starts with, or the whole name where it has none."""
    coded = name[:3].isupper() and name[3:7].isdecimal()
    return name[:7] if coded else name


def _extra_causes(path: Path, faults: list[tuple[str, str]]) -> dict[str, Cause]:
    """Read a user's own vocabulary where their directory has one."""
    from oomdoctor.rules import bundle

    if not (path / stored.CAUSES).exists():
        return {}
    try:
        return bundle.read_causes(path)
    except (RuleError, OSError, KeyError, TypeError, ValueError) as error:
        faults.append((stored.CAUSES, f"{path / stored.CAUSES}: {error}"))
        return {}
