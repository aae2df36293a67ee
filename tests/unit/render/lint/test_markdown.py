"""Markdown in which nothing of an input acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.render.lint.markdown import to_markdown
from tests.unit.linting.made import finding, full, report

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_page_is_as_agreed(golden: Callable[[str, str], None]) -> None:
    golden("screens/full.md", to_markdown(full()))


def test_an_input_cannot_mention_or_mark_up() -> None:
    page = to_markdown(report(finding(message="see @all <img> **x**", source_line="```\n@all")))

    assert "@all <img>" not in page
    assert "````\n" in page


@pytest.mark.parametrize("url", ["javascript:x", "https://x)(y", "https://a b", None])
def test_only_a_plain_address_becomes_a_link(url: str | None) -> None:
    assert "](" not in to_markdown(report(finding(url=url)))


def test_a_report_without_findings_says_so() -> None:
    assert to_markdown(report()).startswith("**oomdoctor lint: nothing found in 1 file**\n")
