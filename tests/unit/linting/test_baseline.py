"""Known findings are held back, new ones are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.linting import baseline
from oomdoctor.record import replace
from tests.unit.linting.made import finding, report

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.model.lint import LintReport


def kept(before: LintReport, after: LintReport, folder: Path) -> LintReport:
    path = folder / "baseline.json"
    path.write_text(baseline.text_of(before, root="."), encoding="utf-8")
    return baseline.applied(after, baseline.read(str(path)), root=".")


def test_a_known_finding_stays_known_when_its_line_moves(tmp_path: Path) -> None:
    after = kept(report(finding(line=3)), report(finding(line=30, message="other words")), tmp_path)

    assert after.findings == ()
    assert [one.how for one in after.files[0].suppressed] == ["baseline"]


@pytest.mark.parametrize(
    "changed",
    [{"code": "COR2002"}, {"key": "bf16"}, {"path": "conf/other.yaml"}],
    ids=str,
)
def test_another_rule_setting_or_file_is_a_new_finding(
    tmp_path: Path, changed: dict[str, str]
) -> None:
    new = finding(**changed)

    assert kept(report(finding()), report(new), tmp_path).findings == (new,)


def test_one_more_of_the_same_is_a_new_finding(tmp_path: Path) -> None:
    first, second = finding(line=3), finding(line=9)

    after = kept(report(first), report(first, second), tmp_path)

    assert after.findings == (second,)


def test_what_is_gone_is_told(tmp_path: Path) -> None:
    after = kept(report(finding(), finding("KEY3001", "x")), report(finding()), tmp_path)

    path = tmp_path / "baseline.json"
    assert after.notes == (f"{path}: 1 known finding is gone: `--write-baseline` writes it anew",)


def test_what_is_known_of_a_file_that_was_not_linted_is_not_gone(tmp_path: Path) -> None:
    after = kept(report(finding()), report(path="conf/other.yaml"), tmp_path)

    assert after.notes == ()


def test_writing_it_anew_keeps_what_it_knew(tmp_path: Path) -> None:
    before = report(finding(), finding("KEY3001", "x"))

    after = kept(before, before, tmp_path)

    assert baseline.text_of(after, root=".") == baseline.text_of(before, root=".")


def test_a_finding_without_a_setting_is_known_by_the_text_of_its_line(tmp_path: Path) -> None:
    old = finding(key=None, source_line="fp16: true")
    moved = finding(key=None, source_line="   fp16:  true ", line=8)
    other = finding(key=None, source_line="bf16: true")

    after = kept(report(old), report(moved, other), tmp_path)

    assert after.findings == (other,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema_version": 2, "findings": {}}',
        '{"schema_version": 1}',
        '{"schema_version": 1, "findings": []}',
        '{"schema_version": 1, "findings": {"a": 1}}',
    ],
)
def test_another_file_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match="no baseline of oomdoctor"):
        baseline.read(str(path))


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("fp16: true\n", encoding="utf-8")

    with pytest.raises(InputError, match="not overwritten"):
        baseline.check_target(str(path))


def test_a_baseline_an_empty_file_or_none_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    baseline.check_target(str(path))
    path.touch()
    baseline.check_target(str(path))
    path.write_text(baseline.text_of(report(), root="."), encoding="utf-8")
    baseline.check_target(str(path))


def test_a_missing_baseline_is_told_with_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the baseline") as caught:
        baseline.read(str(tmp_path / "none.json"))

    assert "--write-baseline" in str(caught.value)


def test_a_file_of_two_jobs_is_known_once(tmp_path: Path) -> None:
    one = report(finding())
    twice = replace(one, jobs=(*one.jobs, *one.jobs))

    assert kept(one, twice, tmp_path).findings == ()
    assert kept(twice, one, tmp_path).notes == ()
