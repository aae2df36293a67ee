"""The page for people, as golden screens; and the lines that tools look for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from oomdoctor.model.core import Quote
from oomdoctor.model.lint import JobReport, LintReport
from oomdoctor.record import replace
from oomdoctor.render.escape import cells
from oomdoctor.render.lint.parts import source
from oomdoctor.render.lint.text import render
from oomdoctor.render.lint.view import LintView
from oomdoctor.render.theme import Theme
from tests.unit.linting.made import GIB, finding, fix, full, report, understood

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Golden = Callable[[str, str], None]

WIDTHS = (60, 100, 160)
PLAIN = Theme(width=100)
QUIET = LintView(verbosity=-1)
TALKATIVE = LintView(verbosity=1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("unicode", [True, False], ids=["unicode", "ascii"])
def test_the_page_is_as_agreed(golden: Golden, width: int, unicode: bool) -> None:
    page = render(full(), Theme(width=width, unicode=unicode))

    assert unicode or page.isascii()
    golden(f"screens/full-{width}{'' if unicode else '-ascii'}.txt", page)


def test_the_talkative_page_is_as_agreed(golden: Golden) -> None:
    golden("screens/full-100-verbose.txt", render(full(), PLAIN, TALKATIVE))


def test_the_coloured_page_is_as_agreed(golden: Golden) -> None:
    golden("screens/full-60-colour.txt", render(full(), Theme(width=60, colour=True)))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", [LintView(), TALKATIVE, QUIET], ids=["as agreed", "-v", "-q"])
def test_colour_changes_no_word(width: int, view: LintView) -> None:
    coloured = render(full(), Theme(width=width, colour=True), view)

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(full(), Theme(width=width), view)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_page(width: int) -> None:
    page = render(full(), Theme(width=width), TALKATIVE)

    assert [line for line in page.splitlines() if cells(line) > width] == []


def test_one_job_is_told_as_understood(golden: Golden) -> None:
    one = report()
    job = replace(one.jobs[0], understood=understood())

    golden("screens/understood.txt", render(replace(one, jobs=(job,)), PLAIN))


def test_the_bar_ends_at_the_memory_of_the_card() -> None:
    *rows, total = understood()
    one = report()
    job = replace(one.jobs[0], understood=(*rows, replace(total, of_bytes=29 * GIB)))

    bar = render(replace(one, jobs=(job,)), Theme(width=62)).split("\n")[4]

    assert (bar.count("█") + bar.count("▓"), bar.count("·")) == (30, 30)


def test_many_jobs_are_told_only_when_asked() -> None:
    job = JobReport(files=report().files, understood=understood())
    several = LintReport(jobs=(job, job))

    assert "as understood" not in render(several, PLAIN)
    assert render(several, PLAIN, TALKATIVE).count("as understood") == 2


def test_quiet_is_one_line_per_finding() -> None:
    lines = render(full(), Theme(width=40), QUIET).splitlines()

    assert [line.split(" ")[0] for line in lines] == [
        "conf/train.yaml:3:1:",
        "conf/train.yaml:12:3:",
        "conf/train.yaml:",
    ]


def test_quiet_says_nothing_where_nothing_was_found() -> None:
    assert render(report(), PLAIN, QUIET) == ""


def test_the_problem_matcher_reads_the_quiet_page(root: Path) -> None:
    matchers = json.loads((root / "docs" / "problem-matcher.json").read_text(encoding="utf-8"))
    owners = {one["owner"]: one["pattern"][0] for one in matchers["problemMatcher"]}
    pattern = owners["oomdoctor"]
    line = render(report(finding(path="a b:c/train.yaml")), PLAIN, QUIET).rstrip("\n")

    found = re.match(pattern["regexp"], line)

    assert found is not None
    assert {name: found[pattern[name]] for name in ("file", "line", "column", "severity")} == {
        "file": "a b:c/train.yaml",
        "line": "3",
        "column": "1",
        "severity": "error",
    }
    assert found[pattern["code"]] == "COR2001"
    assert found[pattern["message"]].startswith("fp16 and bf16 are both on")


def marked(text: str, column: int, end: int, *, width: int = 40) -> list[str]:
    one = finding(source_line=text, column=column, end_column=end)
    return ["".join(span.text for span in line) for line in source(one, Theme(width=width))]


@pytest.mark.parametrize(
    ("text", "column", "end", "shown"),
    [
        ("fp16: true", 1, 5, ["    3 │ fp16: true", "      │ ^^^^"]),
        ("\tx: 1", 2, 3, ["    3 │     x: 1", "      │     ^"]),
        ("词: 1", 1, 2, ["    3 │ 词: 1", "      │ ^^"]),
        ("x: 1", 4, 4, ["    3 │ x: 1", "      │    ^"]),
        ("x", 9, 12, ["    3 │ x", "      │  ^"]),
        ("a\x1b[2J", 1, 2, ["    3 │ a\\x1b[2J", "      │ ^"]),
    ],
    ids=["plain", "tab", "wide", "empty place", "behind the end", "control"],
)
def test_the_mark_stands_under_the_place(
    text: str, column: int, end: int, shown: list[str]
) -> None:
    assert marked(text, column, end) == shown


@pytest.mark.parametrize(
    ("column", "end"), [(1, 3), (60, 62), (119, 121), (1, 121), (30, 119)], ids=str
)
def test_a_long_line_is_cut_around_the_place(column: int, end: int) -> None:
    text = "".join(chr(97 + at % 26) for at in range(120))

    shown, mark = marked(text, column, end)

    at, last = mark.index("^"), mark.rindex("^") + 1
    assert cells(shown) <= 40
    assert shown[at] == text[column - 1]
    assert last - at == min(end - column, last - at)


def test_further_fixes_are_named() -> None:
    fixes = tuple(replace(fix(), title=f"Fix {number}") for number in range(4))

    page = render(report(finding(fixes=fixes)), PLAIN)

    assert "2 more with -v: Fix 2; Fix 3" in page


def test_a_patch_of_another_file_says_which() -> None:
    other = replace(fix(), patches=(replace(fix().patches[0], file="ds.json"),))

    assert "--- a/conf/train.yaml" in render(report(finding(fixes=(other,))), PLAIN)


def test_a_line_that_only_gets_an_end_is_no_change() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a: 1\n\\ No newline at end of file\n+a: 1\n+b: 2\n"
    patch = replace(fix().patches[0], diff=diff)

    page = render(report(finding(fixes=(replace(fix(), patches=(patch,)),))), PLAIN)

    assert "a: 1" not in page
    assert "     +b: 2\n" in page


def test_many_files_that_are_no_configs_are_one_line() -> None:
    files = tuple(replace(report().files[0], path=f"{at}.json", dialect=None) for at in range(9))
    several = LintReport(jobs=(JobReport(files=files),))

    first = render(several, Theme(width=160)).split("\n")[0]

    assert first.startswith("? 0.json, 1.json, 2.json and 6 more: not recognised")
    assert "8.json" in render(several, Theme(width=160), TALKATIVE)


def test_a_place_in_another_file_is_named() -> None:
    there = Quote(artifact="ds.json", line=7, text='"fp16": 1')

    assert "ds.json:7:" in render(report(finding(quotes=(there,))), PLAIN)


def test_escape_sequences_of_an_input_never_reach_the_terminal() -> None:
    evil = "\x1b[2J\u202e"
    quote = Quote(artifact=f"a{evil}", line=9, text=evil)
    one = finding(
        message=evil, rule=evil, path=evil, source_line=evil, quotes=(quote,), breaks=evil
    )

    assert {"\x1b", "\u202e"} & set(render(report(one, notes=(evil,)), PLAIN, TALKATIVE)) == set()
