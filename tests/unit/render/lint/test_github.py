"""Workflow commands: nothing of an input can end one or start another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.lint.github import to_github
from tests.unit.linting.made import finding, full, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.model.lint import LintFinding


def first_line(one: LintFinding) -> str:
    return to_github(report(one), root=".").split("\n")[0]


def test_the_commands_look_as_agreed(golden: Callable[[str, str], None]) -> None:
    golden("screens/full.github", to_github(full(), root="."))


def test_the_severest_come_first() -> None:
    words = [line.split(" ")[0] for line in to_github(full(), root=".").split("\n")[:3]]

    assert words == ["::error", "::warning", "::notice"]


def test_properties_are_escaped() -> None:
    line = first_line(finding(path="a:b,c%d.yaml", rule="x"))

    assert line.startswith("::error file=a%3Ab%2Cc%25d.yaml,line=3,")


def test_a_message_stays_on_its_line() -> None:
    text = to_github(report(finding(message="one\n::error::two\r100%")), root=".")

    assert len(text.splitlines()) == 2
    assert "\n::" not in text
    assert "100%25" in text


def test_a_finding_without_a_line_names_the_file_alone() -> None:
    line = first_line(finding(path=None, line=None, column=None, end_column=None))

    assert line.startswith("::error file=conf/train.yaml,title=COR2001 fp16-and-bf16::")
