"""All rules of the repository: each inline test by its own id, the linter, mutation, the bundle."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from oomdoctor.authoring.check import check_rules
from oomdoctor.authoring.selftest import run_test
from oomdoctor.rules import bundle
from oomdoctor.rules.shape import RuleSet
from oomdoctor.rules.source import RuleSource, read_rule_file

if TYPE_CHECKING:
    from oomdoctor.rules.source import InlineTest

HOME = bundle.rules_dir()
SOURCES = [read_rule_file(path) for path in bundle.rule_files(HOME)]
TESTS = [
    pytest.param(source, test, id=f"{source.rule.code}: {test.name}")
    for source in SOURCES
    if source.rule is not None
    for test in source.tests
]


@cache
def everything() -> RuleSet:
    """Return all rules that compile."""
    causes = bundle.read_causes(HOME)
    rules = [source.rule for source in SOURCES if source.rule is not None]
    known = tuple(rule for rule in rules if rule.cause is None or rule.cause in causes)
    return RuleSet(rules=known, causes=causes)


@pytest.mark.parametrize(("source", "test"), TESTS)
def test_an_inline_test_holds(source: RuleSource, test: InlineTest) -> None:
    assert source.rule is not None

    _, problems = run_test(source.rule, test, ruleset=everything())

    assert [str(problem) for problem in problems] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.path.rpartition("/")[2])
def test_a_rule_is_without_fault(source: RuleSource) -> None:
    report = check_rules([source], others=SOURCES, causes=bundle.read_causes(HOME))

    assert [str(problem) for problem in report.problems] == []


def test_every_cause_has_a_prior_with_a_reason_and_knows_its_near_ones() -> None:
    causes = bundle.read_causes(HOME)

    faults = [
        cause.id
        for cause in causes.values()
        if not (0 < cause.prior < 1 and cause.prior_reason and set(cause.near) <= set(causes))
    ]

    assert faults == []


def test_every_prior_belongs_to_a_cause() -> None:
    listed = set(bundle.read_priors(HOME))

    assert listed == set(bundle.read_causes(HOME))


def test_the_bundle_is_what_the_rules_compile_to() -> None:
    assert bundle.is_current(HOME), "run `python -m oomdoctor.rules.bundle`"
