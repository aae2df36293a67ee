"""The page as a whole, as golden screens at several widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.render.escape import cells
from oomdoctor.render.markdown import to_markdown
from oomdoctor.render.text import render
from oomdoctor.render.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.model.plan import Diagnosis

    Golden = Callable[[str, str], None]

WIDTHS = (60, 100, 160)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_unicode_page_looks_as_agreed(full: Diagnosis, golden: Golden, width: int) -> None:
    golden(f"screens/full-{width}.txt", render(full, width=width, colour=False, unicode=True))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_ascii_page_looks_as_agreed(full: Diagnosis, golden: Golden, width: int) -> None:
    page = render(full, width=width, colour=False, unicode=False)

    assert page.isascii()
    golden(f"screens/full-{width}-ascii.txt", page)


def test_the_full_chain_looks_as_agreed(full: Diagnosis, golden: Golden) -> None:
    page = render(full, width=100, colour=False, unicode=True, view=View(explain=True))

    golden("screens/full-100-explain.txt", page)


def test_the_coloured_page_looks_as_agreed(full: Diagnosis, golden: Golden) -> None:
    golden("screens/full-60-colour.txt", render(full, width=60, colour=True, unicode=True))


def test_an_answer_with_nothing_in_it_looks_as_agreed(nothing: Diagnosis, golden: Golden) -> None:
    golden("screens/nothing-60.txt", render(nothing, width=60, colour=False, unicode=True))


def test_the_markdown_page_looks_as_agreed(full: Diagnosis, golden: Golden) -> None:
    golden("screens/full.md", to_markdown(full))


@pytest.mark.parametrize("width", WIDTHS)
def test_colour_changes_no_word(full: Diagnosis, width: int) -> None:
    import re

    plain = render(full, width=width, colour=False, unicode=True)
    coloured = render(full, width=width, colour=True, unicode=True)

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_but_a_command_is_wider_than_the_page(full: Diagnosis, width: int) -> None:
    page = render(full, width=width, colour=False, unicode=True)

    wide = [line for line in page.splitlines() if cells(line) > width]

    commands = ("nvidia-smi", "export", "oomdoctor")
    assert [line for line in wide if not line.lstrip().startswith(commands)] == []


def test_quiet_leaves_the_verdict_alone(full: Diagnosis) -> None:
    page = render(full, width=100, colour=False, unicode=True, view=View(verbosity=-1))

    assert len(page.splitlines()) == 2


def test_next_shows_only_measurements(full: Diagnosis) -> None:
    page = render(full, width=100, colour=False, unicode=True, view=View(next_only=True))

    assert page.startswith("What to measure next\n")


def test_next_says_so_where_nothing_would_help(nothing: Diagnosis) -> None:
    page = render(nothing, width=100, colour=False, unicode=True, view=View(next_only=True))

    assert page == "No measurement would change the answer.\n"


def test_top_folds_further_causes_into_a_line(full: Diagnosis) -> None:
    page = render(full, width=100, colour=False, unicode=True, view=View(top=1))

    assert "less probable: batch-or-seq-too-large (11 %)" in page
