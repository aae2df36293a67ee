"""What a project has decided is applied in order, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.linting import baseline, policy
from oomdoctor.linting.policy import Policy, matches
from oomdoctor.model.plan import NotEvaluated
from oomdoctor.record import replace
from tests.unit.linting.made import finding, report

if TYPE_CHECKING:
    from oomdoctor.model.lint import LintReport

PATH = "conf/train.yaml"
NAMES = {"fp16-and-bf16": "COR2001", "other": "KEY3001"}


def decided(before: LintReport, text: str = "", **more: Any) -> LintReport:
    return policy.applied(before, Policy(root=".", **more), texts={PATH: text})


def test_rules_are_ignored_in_files_whose_path_matches() -> None:
    both = report(finding(), finding("KEY3001", "other"))

    after = decided(both, per_file_ignores={"conf/*.yaml": ("KEY3",), "*.json": ("COR2",)})

    assert [one.code for one in after.findings] == ["COR2001"]
    held = after.files[0].suppressed[0]
    assert (held.how, held.reason) == ("settings", "per-file-ignores of 'conf/*.yaml'")


def test_patterns_start_from_the_folder_of_the_settings() -> None:
    after = decided(
        report(finding()), per_file_ignores={"train.yaml": ("COR2",)}, settings_root="conf"
    )

    assert after.findings == ()


def test_comments_come_before_the_baseline() -> None:
    text = "a: 1\nb: 1\nfp16: true # oomdoctor: ignore[COR2001] why\n"
    known = baseline.Baseline(path="b.json", entries={})

    after = decided(report(finding()), text, baseline=known)

    assert [one.how for one in after.files[0].suppressed] == ["comment"]


@pytest.mark.parametrize(
    ("silent", "used", "notes"),
    [
        ((), lambda _: True, 1),
        (("KEY3001",), lambda _: True, 0),
        ((), lambda code: code != "KEY3001", 0),
    ],
    ids=["judged", "open", "not selected"],
)
@pytest.mark.parametrize("name", ["KEY3001", "other"])
def test_a_comment_is_useless_only_where_its_rule_was_judged(
    silent: tuple[str, ...], used: object, notes: int, name: str
) -> None:
    before = report()
    job = replace(
        before.jobs[0],
        not_evaluated=tuple(NotEvaluated(code=code, needs=("gpu.total",)) for code in silent),
    )

    after = decided(
        replace(before, jobs=(job,)),
        f"a: 1 # oomdoctor: ignore[{name}] why\n",
        names=NAMES,
        is_used=used,
    )

    assert len(after.files[0].notes) == notes


@pytest.mark.parametrize(
    ("path", "pattern", "does"),
    [
        ("a/b/x.yaml", "x.yaml", True),
        ("a/b/x.yaml", "*.yaml", True),
        ("a/b/x.yaml", "a/*", True),
        ("a/b/x.yaml", "./a/b/x.yaml", True),
        ("a/x.yaml", "a/**/x.yaml", True),
        ("a/b/x.yaml", "b/x.yaml", False),
        ("a/b/x.yml", "*.yaml", False),
    ],
)
def test_patterns_of_paths(path: str, pattern: str, does: bool) -> None:
    assert matches(path, pattern) is does


def test_a_comment_that_serves_one_of_two_jobs_is_of_use() -> None:
    text = "fp16: true # oomdoctor: ignore[COR2001] why\n"
    with_it, without = report(finding(line=1)), report()

    after = decided(replace(without, jobs=(*without.jobs, *with_it.jobs)), text)

    assert (after.findings, after.files[0].notes) == ((), ())
