"""Phrases that the formats share."""

from __future__ import annotations

import pytest

from oomdoctor.model.enums import Safety, Severity
from oomdoctor.model.lint import JobReport, LintReport
from oomdoctor.model.plan import NotEvaluated, Patch
from oomdoctor.record import replace
from oomdoctor.render.lint.words import best_fact, fix_summary, fixable, price, summary
from tests.unit.linting.made import finding, fix, full, report


def test_a_summary_counts_what_stands() -> None:
    assert summary(report(finding(), finding(severity=Severity.WARNING))) == (
        "1 error, 1 warning in 1 file"
    )
    assert summary(report()) == "nothing found in 1 file"
    assert summary(full()) == (
        "1 error, 1 warning, 1 remark in 1 of 4 files, 1 not recognised; 2 held back"
    )


@pytest.mark.parametrize(
    ("safety", "counts", "words"),
    [
        (Safety.SAFE, (1, 0), "--fix cures 1"),
        (Safety.CHANGES_MATH, (0, 1), "--fix --unsafe cures 1"),
        (Safety.NEEDS_CODE, (0, 0), None),
    ],
)
def test_what_a_patch_can_cure_is_counted(
    safety: Safety, counts: tuple[int, int], words: str | None
) -> None:
    one = report(finding(fixes=(replace(fix(), safety=safety),)))

    assert (fixable(one), fix_summary(one)) == (counts, words)


def test_advice_without_a_patch_cures_nothing_by_itself() -> None:
    bare = replace(fix(), patches=(Patch(dialect="env", settings={"A": 1}),))

    assert fix_summary(report(finding(fixes=(bare,)))) is None


def test_a_finding_with_a_safe_fix_needs_no_unsafe_one() -> None:
    fixes = (fix(), replace(fix(), safety=Safety.CHANGES_MATH))
    other = finding(fixes=fixes[1:])

    assert fix_summary(report(finding(fixes=fixes), other)) == (
        "--fix cures 1, and with --unsafe 1 more"
    )


def test_a_price_names_only_what_changes() -> None:
    bare = replace(fix(), saving=None, time_factor=1.0)

    assert price(bare) == ""
    assert price(replace(bare, time_factor=1.3, quality="slightly noisier")) == (
        "step time x 1.3, result: slightly noisier"
    )
    assert price(replace(bare, sufficient=False)) == "not enough on its own"


def job(*needs: tuple[str, ...]) -> JobReport:
    silent = tuple(NotEvaluated(code=f"MEM{1000 + at}", needs=one) for at, one in enumerate(needs))
    return JobReport(files=(), not_evaluated=silent)


def test_the_fact_that_settles_most_rules_helps_most() -> None:
    assert best_fact((job(("b",), ("a", "b"), ("c",)),)) == ("b", 1, 3)


def test_a_rule_that_is_open_in_two_jobs_counts_once() -> None:
    assert best_fact((job(("b",)), job(("b",)))) == ("b", 1, 1)


def test_no_open_rule_needs_no_fact() -> None:
    assert best_fact(LintReport(jobs=(job(),)).jobs) is None
