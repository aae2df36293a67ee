"""Text from inputs can act neither on a terminal nor in an issue."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.model.core import Quote
from oomdoctor.render.escape import cells, code_block, code_span, html, markdown, shorten, visible
from oomdoctor.render.markdown import to_markdown
from oomdoctor.render.text import render

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis

EVIL = (
    "\x1b[2J\x1b]8;;http://x\x07[red]bold[/] \u202eevil\u2069 <img src=x> @all #1 "
    "``` ~~~\r\x9b1m\ud800"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("a\rb\nc", "a\\x0db\\x0ac"),
        ("\x9b1m", "\\x9b1m"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\tb", "a    b"),
        ("naïve 漢字", "naïve 漢字"),
    ],
)
def test_what_cannot_be_printed_is_shown_as_an_escape(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text())
def test_visible_text_is_printable_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)

    assert shown.isprintable()
    assert visible(shown) == shown


@given(st.text())
def test_ascii_pages_hold_ascii_only(text: str) -> None:
    assert visible(text, ascii_only=True).isascii()


@given(st.text(), st.integers(min_value=8, max_value=80))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    assert cells(shorten(visible(text), width)) <= width


def test_a_long_text_loses_its_middle() -> None:
    assert shorten("abcdefghijklmnopqrstuvwxyz", 13) == "abcdefg...xyz"


def test_wide_characters_take_two_columns() -> None:
    assert cells("漢字ab") == 6


def test_html_is_shown_and_not_obeyed() -> None:
    assert html("<b>&'\"") == "&lt;b&gt;&amp;&apos;&quot;"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*a* _b_", "\\*a\\* \\_b\\_"),
        ("@all #12", "@<!-- -->all #<!-- -->12"),
        ("https://x.y", "https:<!-- -->//x.y"),
        ("www.x", "www<!-- -->.x"),
        ("- a - b", "\\- a - b"),
        ("[a](b)", "\\[a\\](b)"),
    ],
)
def test_markdown_is_shown_and_not_obeyed(text: str, expected: str) -> None:
    assert markdown(text) == expected


def test_a_code_span_outgrows_the_backticks_in_it() -> None:
    assert code_span("a``b") == "```a``b```"


def test_a_code_block_outgrows_the_fences_in_it() -> None:
    assert code_block("x\n````\ny").split("\n")[0] == "`````"


@given(st.text(alphabet="`a\n ~"))
def test_no_line_of_a_code_block_closes_it(text: str) -> None:
    fence, *inside, last = code_block(text).split("\n")

    assert last == fence
    assert not any(line.strip().startswith(fence) for line in inside)


@pytest.fixture
def hostile(full: Diagnosis) -> Diagnosis:
    """A diagnosis in which every text is out to get the reader."""
    quote = Quote(artifact=EVIL, line=1, text=EVIL)
    first, *others = full.causes
    cause = replace(
        first, quotes=(quote,), against=(quote,), says=EVIL, title=EVIL, missing=("loss.impl",)
    )
    fix = replace(full.prescriptions[0], title=EVIL, advice=EVIL, cautions=(EVIL,))
    assert full.event is not None
    return replace(
        full,
        headline=EVIL,
        event=replace(full.event, line_quote=quote),
        causes=(cause, *others),
        prescriptions=(fix, *full.prescriptions[1:]),
        notes=(EVIL,),
    )


@pytest.mark.parametrize("colour", [False, True])
def test_a_page_passes_no_control_character_on(hostile: Diagnosis, *, colour: bool) -> None:
    import re

    page = render(hostile, width=100, colour=colour, unicode=True)

    bare = re.sub(r"\x1b\[[0-9;]*m", "", page) if colour else page
    assert all(char == "\n" or char.isprintable() for char in bare)
    assert "[red]bold[/]" in bare.replace("\n", " ")


def test_an_issue_gets_no_html_and_no_mention(hostile: Diagnosis) -> None:
    page = to_markdown(hostile)

    prose = [line for line in _outside_code(page) if "<details>" not in line]
    assert not any("<img" in line or "@all" in line for line in prose)


def _outside_code(page: str) -> list[str]:
    outside, fence = [], ""
    for line in page.split("\n"):
        mark = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if line == fence else fence
        elif len(mark) >= 3:
            fence = mark
        else:
            outside.append(line)
    return outside
