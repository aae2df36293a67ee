"""What verdicts on growth say: steps, times, kinds; and the schema of the same as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoctor.growth.course import Course
from oomdoctor.growth.forecast import Forecast
from oomdoctor.growth.points import Point
from oomdoctor.growth.verdict import Kind, Level
from oomdoctor.render.theme import Theme
from oomdoctor.render.watch_screen import spark
from oomdoctor.render.watch_words import KINDS, duration, steps_words, time_words

ROOT = Path(__file__).resolve().parents[3]


def told(first: float, left: float, last: float | None) -> Forecast:
    return Forecast(
        now=1000, left=left, first=first, last=last, seconds_each=0.5, room_bytes=1 << 30
    )


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        (told(2900, 3312, 3800), "about 4,310 (3,900 to 4,800)"),
        (told(3310, 3312, 3314), "about 4,312 (4,310 to 4,314)"),
        (told(3312, 3312, 3312), "about 4,312"),
        (told(200_000, 300_000, 900_000), "about 300,000 (200,000 to 900,000)"),
        (told(500, 1000, None), "about 2,000 (1,500 or later)"),
        (told(0, 0, 0), "about 1,000"),
    ],
)
def test_a_step_has_as_many_digits_as_its_interval_allows(forecast: Forecast, words: str) -> None:
    assert steps_words(forecast) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (600, "10 min"),
        (2280, "38 min"),
        (3600, "1 h"),
        (9000, "2 h 30 min"),
        (86400 * 3 + 7200, "3 d 2 h"),
        (86400 * 365 * 30, "more than 10 years"),
    ],
)
def test_a_time_has_two_units_at_most(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_time_tells_its_interval() -> None:
    assert time_words(told(4080, 4560, 5160)) == "38 min (34 min to 43 min)"
    assert time_words(told(4080, 4560, None)) == "38 min (34 min or later)"


def test_every_kind_has_words_and_stands_in_the_schema() -> None:
    schema = json.loads((ROOT / "docs" / "watch.schema.json").read_text(encoding="utf-8"))
    verdict = schema["$defs"]["verdict"]["properties"]

    assert set(KINDS) == set(Kind)
    assert set(verdict["kind"]["enum"]) == {one.value for one in Kind}
    assert set(verdict["course"]["enum"]) == {one.value for one in Course}
    assert set(verdict["level"]["enum"]) == {one.name.lower() for one in Level}


@pytest.mark.parametrize(("unicode", "drawn"), [(True, "▁▂▃▄▅▆▇█    "), (False, "_.-:=+*#    ")])
def test_a_line_of_blocks_goes_from_the_lowest_to_the_highest(unicode: bool, drawn: str) -> None:
    points = [Point(n, n, n * 100, n * 100) for n in range(8)]

    assert spark(points, Theme(unicode=unicode)) == drawn


def test_a_change_of_a_hundredth_fills_no_line() -> None:
    points = [Point(n, n, 100_000 + n, 0) for n in range(8)]

    assert spark(points, Theme()).strip() == "▁" * 8
