"""Comments that hold findings back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.linting.suppressions import Suppression, applied, read
from oomdoctor.model.core import Quote
from oomdoctor.model.lint import FileReport
from tests.unit.linting.made import finding

if TYPE_CHECKING:
    from oomdoctor.model.lint import LintFinding


def held(text: str, *findings: LintFinding, **more: Any) -> FileReport:
    file = FileReport(path="conf/train.yaml", dialect="trl", findings=findings)
    return applied(file, text, **more)


def test_a_comment_behind_a_setting_is_for_its_line() -> None:
    text = "a: 1\nfp16: true  # oomdoctor: ignore[COR2001] an old card\n"

    assert read(text) == (
        (Suppression(line=2, names=("COR2001",), target=2, reason="an old card"),),
        (),
    )


def test_a_comment_on_a_line_of_its_own_is_for_the_next_setting() -> None:
    text = "# oomdoctor: ignore[a, B1] why\n\n# more words\nfp16: true\n"

    assert read(text)[0] == (Suppression(line=1, names=("a", "B1"), target=4, reason="why"),)


def test_a_comment_for_the_file_stands_above_the_first_setting() -> None:
    text = "---\n# oomdoctor: ignore-file[KEY3] not ours\nfp16: true\n"

    assert read(text)[0] == (Suppression(line=2, names=("KEY3",), target=None, reason="not ours"),)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (
            "a: 1\n# oomdoctor: ignore-file[KEY3] x\n",
            "2: `ignore-file` must stand above the first setting",
        ),
        (
            "a: 1 # oomdoctor: ignore\n",
            "1: `ignore` names no rule: write `ignore[CODE] reason`",
        ),
        (
            "a: 1 # oomdoctor: ignore[ ] x\n",
            "1: `ignore` names no rule: write `ignore[CODE] reason`",
        ),
    ],
)
def test_a_comment_that_cannot_be_used_is_told(text: str, remark: str) -> None:
    assert read(text) == ((), (remark,))


@pytest.mark.parametrize(
    "text",
    [
        "// oomdoctor: ignore[A1] why\n{}\n",
        '    "# oomdoctor: ignore[A1] why\\n",\n    "x = 1\\n"\n',
        "<!-- oomdoctor: ignore[A1] why -->\nx\n",
        "# OOMDOCTOR: Ignore[A1]: why\nx: 1\n",
    ],
)
def test_comments_of_other_languages_are_read(text: str) -> None:
    assert [(one.names, one.target, one.reason) for one in read(text)[0]] == [(("A1",), 2, "why")]


def test_words_that_only_look_like_it_are_none() -> None:
    assert read("# oomdoctor: ignored[A1]\n# see oomdoctor: good\n") == ((), ())


def test_a_finding_is_held_back_with_its_reason() -> None:
    text = "a: 1\nb: 2\nfp16: true # oomdoctor: ignore[cor2001] old card\n"

    file = held(text, finding(), finding("KEY3001", "other"))

    assert [one.code for one in file.findings] == ["KEY3001"]
    assert [(one.finding.code, one.how, one.reason) for one in file.suppressed] == [
        ("COR2001", "comment", "old card")
    ]
    assert file.notes == ()


def test_a_rule_can_be_named_by_its_name_or_the_start_of_its_code() -> None:
    text = "a: 1\nb: 2\n# oomdoctor: ignore[fp16-and-bf16, KEY3] both\nfp16: true\n"

    file = held(text, finding(line=4), finding("KEY3001", "other", line=4))

    assert (file.findings, file.notes) == ((), ())


def test_a_finding_about_two_lines_may_be_held_back_at_either() -> None:
    quotes = (Quote(artifact="conf/train.yaml", line=1, text="bf16: true"),)

    file = held("bf16: true # oomdoctor: ignore[COR2001] x\n", finding(quotes=quotes))

    assert file.findings == ()


def test_a_finding_without_a_line_is_held_back_for_the_file_alone() -> None:
    missing = finding(line=None)

    assert held("a: 1 # oomdoctor: ignore[COR2001] x\n", missing).findings == (missing,)
    assert held("# oomdoctor: ignore-file[COR2001] x\na: 1\n", missing).findings == ()


def test_a_comment_that_held_nothing_back_is_told() -> None:
    file = held("a: 1 # oomdoctor: ignore[COR2001] x\n")

    assert file.notes == ("conf/train.yaml:1: `ignore[COR2001]` holds nothing back: take it away",)


def test_a_rule_that_was_not_judged_is_not_said_to_be_ignored_in_vain() -> None:
    file = held("a: 1 # oomdoctor: ignore[COR2001] x\n", is_open=lambda name: name == "COR2001")

    assert file.notes == ()


def test_a_missing_reason_is_told() -> None:
    file = held("fp16: 1 # oomdoctor: ignore[COR2001]\n", finding(line=1))

    assert file.findings == ()
    assert file.notes == (
        "conf/train.yaml:1: `ignore[COR2001]` gives no reason: write one behind it",
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [("fp16-and-bf61", ": did you mean `fp16-and-bf16`?"), ("zzz", "")],
)
def test_a_misspelt_name_is_told_with_the_one_that_was_meant(name: str, near: str) -> None:
    known = {"fp16-and-bf16": "COR2001"}

    file = held(f"a: 1 # oomdoctor: ignore[{name}] x\n", known=known)

    assert file.notes == (f"conf/train.yaml:1: `ignore[{name}]` names no rule{near}",)


def test_a_file_without_comments_stays_as_it_is() -> None:
    file = FileReport(path="a.yaml", dialect="trl", findings=(finding(),))

    assert applied(file, "fp16: true\n") is file
