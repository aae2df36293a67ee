"""Run the inline tests of rules: gate, missing facts, pinned evidence lines, probability.

python -m oomdoctor.authoring.selftest rules/ALC3/ALC3001-*.yaml
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oomdoctor.authoring.given import book_of
from oomdoctor.errors import OomdoctorError
from oomdoctor.model.enums import Truth
from oomdoctor.rules.evaluate import condition_verdict, gate
from oomdoctor.rules.fields import near
from oomdoctor.rules.nodes import Problem
from oomdoctor.rules.stored import LINT_FAMILIES
from oomdoctor.rules.versions import COMPARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook
    from oomdoctor.rules.shape import Rule, RuleSet
    from oomdoctor.rules.source import InlineTest, RuleSource

EXPECTED = {"match": Truth.TRUE, "no_match": Truth.FALSE, "unknown": Truth.UNKNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An inline test with its book of facts."""

    test: InlineTest
    book: FactBook


@dataclass(slots=True, kw_only=True)
class TestRun:
    """The cases of one rule that could be built, and what went wrong."""

    cases: list[Case] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def run_tests(source: RuleSource, *, ruleset: RuleSet | None = None) -> TestRun:
    """Run all inline tests of a rule; probabilities need the set of all rules."""
    run = TestRun()
    if source.rule is None:
        return run
    for test in source.tests:
        case, problems = run_test(source.rule, test, ruleset=ruleset)
        run.problems += problems
        if case is not None:
            run.cases.append(case)
    return run


def run_test(
    rule: Rule, test: InlineTest, *, ruleset: RuleSet | None = None
) -> tuple[Case | None, list[Problem]]:
    """Run one inline test; the case is None where its facts could not be read."""
    try:
        case = Case(test=test, book=book_of(test, for_lint=_is_lint(rule)))
    except OomdoctorError as error:
        return None, [_problem(test, str(error))]
    problems = failures_of(rule, case)
    if ruleset is not None and test.probability is not None:
        problems += _probability_failures(rule, case, ruleset)
    return case, problems


def _is_lint(rule: Rule) -> bool:
    return rule.code[:4] in LINT_FAMILIES


def failures_of(rule: Rule, case: Case) -> list[Problem]:
    """Return how a rule misses what a test expects of its gate and evidence lines."""
    messages = [*gate_failures(rule, case), *_severity_failures(rule, case)]
    failures = [_problem(case.test, message) for message in messages]
    return failures + list(_evidence_failures(rule, case))


def gate_failures(rule: Rule, case: Case) -> Iterator[str]:
    """Yield what is wrong with the gate: its truth, or facts that it should ask for."""
    verdict = gate(rule, case.book)
    wanted = EXPECTED[case.test.expect]
    if verdict.truth is not wanted:
        lacking = f" (it lacks {', '.join(sorted(verdict.missing))})" if verdict.missing else ""
        yield f"expected {case.test.expect}, but the gate is {verdict.truth.value}{lacking}"
    for key in case.test.missing:
        if key not in verdict.missing:
            listed = ", ".join(sorted(verdict.missing)) or "nothing"
            yield f"expected {key} among the missing facts, but the gate lacks {listed}"


def _severity_failures(rule: Rule, case: Case) -> Iterator[str]:
    """Yield where assumptions and versions leave another severity than the test expects."""
    if case.test.severity is None:
        return
    from oomdoctor.reason.standing import standing_of

    standing = standing_of(rule, gate(rule, case.book), case.book)
    found = "none" if standing is None else standing.severity.value
    if found != case.test.severity:
        yield f"expected the severity {case.test.severity}, but it is {found}"


def _evidence_failures(rule: Rule, case: Case) -> Iterator[Problem]:
    lines = {line.label: line for line in rule.evidence}
    for label, wanted in case.test.evidence.items():
        line = lines.get(label)
        if line is None:
            hint = near(label, tuple(lines)) if lines else "the rule has no evidence"
            yield _problem(case.test, f"no evidence line is labelled {label!r}; {hint}")
            continue
        verdict = condition_verdict(line.condition, case.book)
        if verdict.truth.value != wanted.lower():
            lacking = f" (it lacks {', '.join(sorted(verdict.missing))})" if verdict.missing else ""
            message = f"expected {label!r} to be {wanted.lower()}, but it is {verdict.truth.value}"
            yield _problem(case.test, message + lacking)


def _probability_failures(rule: Rule, case: Case, ruleset: RuleSet) -> Iterator[Problem]:
    from oomdoctor.reason.rank import rank

    bound = case.test.probability or ""
    sign = bound.rstrip("0123456789. ")
    found = [
        finding for finding in rank(ruleset, case.book).findings if finding.cause == rule.cause
    ]
    probability = found[0].probability if found else 0.0
    if not COMPARE[sign](probability, float(bound[len(sign) :])):
        message = f"expected a probability {bound}, but {rule.cause} has {probability:.2f}"
        yield _problem(case.test, message)


def _problem(test: InlineTest, message: str) -> Problem:
    return Problem(message=f"test {test.name!r}: {message}", location=test.location)


def main(paths: list[str]) -> int:
    """Check the given rule files (all rules, where none is given) and print what is wrong."""
    from oomdoctor.authoring.check import check_paths

    return check_paths(paths)


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
