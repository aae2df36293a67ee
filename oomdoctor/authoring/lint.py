"""The rule linter: each check is a small function from a rule file to the problems it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.authoring.patches import patch_faults
from oomdoctor.authoring.selftest import EXPECTED
from oomdoctor.errors import Location
from oomdoctor.facts.registry import did_you_mean, specs
from oomdoctor.rules.bundle import patterns_in
from oomdoctor.rules.evaluate import expression_value, expressions_of
from oomdoctor.rules.fields import near
from oomdoctor.rules.nodes import Problem
from oomdoctor.rules.patterns import search
from oomdoctor.rules.stored import LINT_FAMILIES, SHARED_FAMILIES
from oomdoctor.rules.words import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from oomdoctor.authoring.selftest import Case
    from oomdoctor.rules.shape import Cause, Fix, Rule
    from oomdoctor.rules.source import RuleSource

PROBE_CHARS = 12_000
"""Steps that grow by the square of it take a second: regex 2026.11 takes 0.28 s for 6,000."""
_ALWAYS_KNOWN = frozenset({"oom.seen"})


def lint_rule(source: RuleSource, causes: Mapping[str, Cause]) -> Iterator[Problem]:
    """Yield what is wrong with one compiled rule beside its tests."""
    rule = source.rule
    if rule is None:
        return
    for check in CHECKS:
        for field, message in check(rule):
            yield _problem(source, field, message)
    for field, message in _cause_faults(rule, causes):
        yield _problem(source, field, message)


def lint_names(sources: Iterable[RuleSource]) -> Iterator[Problem]:
    """Yield codes, names and titles that two rules share."""
    seen: dict[tuple[str, str], str] = {}
    for source in sources:
        rule = source.rule
        if rule is None:
            continue
        for field, value in (("code", rule.code), ("name", rule.name), ("title", rule.title)):
            first = seen.setdefault((field, value), source.path)
            if first != source.path:
                yield _problem(source, field, f"{field} {value!r} is taken by {first}")


def lint_cases(source: RuleSource, cases: list[Case]) -> Iterator[Problem]:
    """Yield missing sorts of tests, and savings that make no sense on the facts of a test."""
    rule = source.rule
    if rule is None:
        return
    present = {case.test.expect for case in cases}
    for expect in EXPECTED:
        if expect not in present and not (expect == "unknown" and _always_known(rule)):
            yield _problem(source, "tests", f"no test expects {expect}: each rule needs one")
    for fix in rule.fixes:
        yield from (_problem(source, "fixes", message) for message in _saving_faults(fix, cases))


def _always_known(rule: Rule) -> bool:
    from oomdoctor.rules.evaluate import leaves_of

    return all(leaf.reads <= _ALWAYS_KNOWN for leaf in leaves_of(rule.when))


def _saving_faults(fix: Fix, cases: list[Case]) -> Iterator[str]:
    if fix.saves is None:
        return
    formulas = (fix.saves.low, fix.saves.likely, fix.saves.high)
    for case in cases:
        values = [expression_value(formula, case.book)[0] for formula in formulas]
        known = [value for value in values if isinstance(value, (int, float))]
        where = f"fix {fix.id}: on the facts of test {case.test.name!r}"
        if any(value < 0 for value in known):
            yield f"{where} it saves a negative amount: {values} (use max(0*B, ...))"
        elif known != sorted(known):
            yield f"{where} low <= likely <= high does not hold: {values}"


def _file_name_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    path = Path(rule.path or "")
    wanted = f"{rule.code}-{rule.name}.yaml"
    if path.name != wanted:
        yield "name", f"the file is {path.name}, expected {wanted}"
    if path.parent.name != rule.code[:4]:
        yield "code", f"the file is in {path.parent.name}/, expected {rule.code[:4]}/"


def _cause_faults(rule: Rule, causes: Mapping[str, Cause]) -> Iterator[tuple[str, str]]:
    if rule.code[:4] in LINT_FAMILIES | SHARED_FAMILIES:
        if rule.cause is not None:
            yield "cause", "lint rules and side findings have no cause"
    elif rule.cause is None:
        yield "code", "missing field 'cause': an entry of causes.yaml"
    elif rule.cause not in causes:
        yield "cause", f"{rule.cause!r} is not in causes.yaml; {near(rule.cause, tuple(causes))}"
    for word in rule.related:
        if word not in causes and not re.fullmatch(r"[A-Z]{3}\d{4}", word):
            yield "related", f"{word!r} is neither a cause nor a code"


def _lint_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    """Check what lint rules have beside a gate: category, basis, source, versions, places."""
    if rule.code[:4] in LINT_FAMILIES:
        for field, value in (
            ("category", rule.category),
            ("basis", rule.basis),
            ("source", rule.source),
        ):
            if value is None:
                yield "code", f"missing field {field!r}: a lint rule says how it is known"
        family = CATEGORIES.get(rule.category or "", rule.code[:4])
        if family != rule.code[:4]:
            yield "category", f"category {rule.category!r} belongs to the family {family}"
    for package, version in rule.breaks_from.items():
        if re.fullmatch(r"\d+(\.\d+){0,2}", version) is None:
            yield "breaks_from", f"{package}: {version!r} is no version such as 4.51.0"
    for key in rule.at:
        if key not in specs():
            yield "at", f"{key} is no fact; {did_you_mean(key)}"


def _evidence_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    if rule.cause is not None and not rule.evidence:
        yield "code", "a rule with a cause needs evidence lines to be weighed by"
    labels = [line.label for line in rule.evidence]
    for label in sorted({label for label in labels if labels.count(label) > 1}):
        yield "evidence", f"two lines are labelled {label!r}"
    for line in rule.evidence:
        if line.in_cause == line.otherwise:
            yield "evidence", f"{line.label!r} is seen as often with the cause as without: no sign"


def _sentence_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    for key in re.findall(r"\{([^{}]*)\}", rule.says or ""):
        if key not in specs():
            yield "says", f"the place {{{key}}} is no fact; {did_you_mean(key)}"
    for fix in rule.fixes:
        if re.search(r"\{[a-z_]+\.[a-z_]+\}", fix.advice or ""):
            yield "fixes", f"fix {fix.id}: advice is printed as it stands, without {{places}}"


def _fix_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    ids = [fix.id for fix in rule.fixes]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield "fixes", f"two fixes are called {name!r}"
    for fix in rule.fixes:
        if not fix.patch and not fix.advice:
            yield "fixes", f"fix {fix.id} has neither a patch nor advice"
        for message in patch_faults(fix):
            yield "fixes", message


def _unfinished_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    texts = {"title": rule.title, "says": rule.says or "", "why": rule.why}
    texts["known_problems"] = rule.known_problems
    texts["fixes"] = " ".join(f"{fix.title} {fix.advice}" for fix in rule.fixes)
    for field, text in texts.items():
        if "TODO" in text:
            yield field, "the template's TODO is still there"


def _link_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    for link in rule.references:
        if not re.fullmatch(r"https?://[\w.-]+\.[a-z]{2,}(/[^\s<>\"]*)?", link):
            yield "references", f"{link!r} is no link (https://...)"


def _pattern_faults(rule: Rule) -> Iterator[tuple[str, str]]:
    patterns = {p for expression in expressions_of(rule) for p in patterns_in(expression.tree)}
    for pattern in sorted(patterns):
        for probe in probes_for(pattern):
            if search(pattern, probe).timed_out:
                shown = f"{probe[:12]!r}..."
                yield "when", f"the pattern {pattern!r} takes too long on a line like {shown}"
                break


def probes_for(pattern: str) -> Iterator[str]:
    """Yield texts that make a pattern with nested or adjoining repeats back-track.

    Each is a long run and a tail that does not go on with it; the pattern's own letters stand
    around it, so that a check for required letters does not end the search early.
    """
    literals = re.sub(r"\\.|[^\w\s=:,./-]", "", pattern)
    words = [word for word in re.findall(r"\w+", literals) if len(word) > 1][:4]
    characters = list(dict.fromkeys([*"a0 .", *literals]))[:16]
    for unit in [*characters, "a ", "0,", *(f"{word} " for word in words)]:
        run = unit * (PROBE_CHARS // len(unit))
        yield f"{run}\x00\x00\x00"
        yield f"{literals}\n{run}\x00{literals}\x00"


def _problem(source: RuleSource, field: str, message: str) -> Problem:
    at = source.places.get(field) or Location(path=source.path, line=1, column=1)
    return Problem(message=message, location=at)


CHECKS: tuple[Callable[[Rule], Iterator[tuple[str, str]]], ...] = (
    _file_name_faults,
    _lint_faults,
    _evidence_faults,
    _sentence_faults,
    _fix_faults,
    _unfinished_faults,
    _link_faults,
    _pattern_faults,
)
