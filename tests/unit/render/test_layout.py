"""Wrapping, bars and the decisions of the theme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.render.bars import Share, bar
from oomdoctor.render.escape import cells
from oomdoctor.render.layout import Span, flow, plain
from oomdoctor.render.theme import colour_wanted, unicode_wanted, width_wanted
from oomdoctor.render.words import percent


def test_text_is_broken_at_blanks_and_hangs_below_its_first_line() -> None:
    lines = flow(["one two three"], width=9, first="1. ")

    assert plain(lines) == "1. one\n   two\n   three"


def test_a_word_that_is_too_long_is_broken_where_the_line_ends() -> None:
    assert plain(flow(["abcdefghij"], width=4)) == "abcd\nefgh\nij"


def test_spans_that_touch_stay_together() -> None:
    lines = flow([Span("a word", "bold"), Span(", next")], width=8)

    assert plain(lines) == "a word,\nnext"


@given(st.text(alphabet="ab 漢", max_size=60), st.integers(min_value=4, max_value=30))
def test_no_line_is_wider_than_asked_and_no_letter_is_lost(text: str, width: int) -> None:
    page = plain(flow([text], width=width, first="- "))

    assert all(cells(line) <= width for line in page.split("\n"))
    assert "".join(page.split())[1:] == "".join(text.split())


@given(st.lists(st.integers(min_value=0, max_value=2**40), min_size=1, max_size=6))
def test_a_bar_has_the_width_asked_for_and_shows_every_share(sizes: list[int]) -> None:
    shares = [Share(size, str(at), "") for at, size in enumerate(sizes)]

    drawn = "".join(span.text for span in bar(shares, whole=sum(sizes), width=40))

    assert len(drawn) == 40
    assert {str(at) for at, size in enumerate(sizes) if size} <= set(drawn)


@pytest.mark.parametrize(
    ("mode", "environ", "terminal", "expected"),
    [
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {}, True, True),
        ("auto", {}, False, False),
    ],
)
def test_colour_is_decided_in_a_fixed_order(
    mode: str, environ: dict[str, str], *, terminal: bool, expected: bool
) -> None:
    assert colour_wanted(mode, environ=environ, terminal=terminal) is expected


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", True), ("UTF8", True), ("ascii", False), ("cp1252", False), (None, False)],
)
def test_only_utf_encodings_get_unicode(encoding: str | None, *, expected: bool) -> None:
    assert unicode_wanted(encoding, environ={}) is expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"LC_ALL": "C"}, False),
        ({"LC_CTYPE": "POSIX", "LANG": "de_DE.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "C"}, False),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, True),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, True),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}, True),
    ],
)
def test_the_c_locale_gets_ascii_although_python_writes_utf_8(
    environ: dict[str, str], *, expected: bool
) -> None:
    assert unicode_wanted("utf-8", environ=environ) is expected


@pytest.mark.parametrize(
    ("asked", "columns", "expected"),
    [(60, 200, 60), (10, None, 40), (None, None, 100), (None, 80, 80), (None, 400, 160)],
)
def test_the_width_is_asked_for_or_the_terminals_or_100(
    asked: int | None, columns: int | None, expected: int
) -> None:
    assert width_wanted(asked, columns=columns) == expected


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(0.004, "< 1 %"), (0.834, "83 %"), (0.999, "> 99 %"), (1.0, "100 %"), (0.0, "0 %")],
)
def test_percentages_never_round_to_certainty(probability: float, expected: str) -> None:
    assert percent(probability) == expected
