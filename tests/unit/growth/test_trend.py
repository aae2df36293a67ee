"""Slopes, their intervals, and how sure they are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.growth.trend import trend

WHOLE = st.integers(min_value=0, max_value=1 << 40)
SERIES = st.lists(WHOLE, min_size=2, max_size=40)


def test_a_line_has_its_slope_and_no_width() -> None:
    found = trend(range(10), [3 * at for at in range(10)])

    assert (found.slope, found.low, found.high, found.noise) == (3, 3, 3, 0)


def test_a_quarter_of_wild_values_moves_no_slope() -> None:
    values = [100.0 * at for at in range(24)]
    for wild in (2, 7, 11, 13, 17, 22):
        values[wild] = 1e9

    assert trend(range(24), values).slope == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("count", [8, 20, 48])
def test_what_always_rises_is_beyond_three_deviations_from_eight_points_on(count: int) -> None:
    assert trend(range(count), range(count)).score > 3


def test_seven_points_are_never_beyond_three_deviations() -> None:
    assert trend(range(7), range(7)).score <= 3.01


def test_values_that_are_all_the_same_have_no_score() -> None:
    found = trend(range(9), [5] * 9)

    assert (found.slope, found.score) == (0, 0)


def test_the_interval_holds_the_slope_nineteen_times_of_twenty() -> None:
    rng = random.Random(7)
    held = 0
    for _ in range(200):
        found = trend(range(30), [2.0 * at + rng.gauss(0, 10) for at in range(30)])
        held += found.low <= 2.0 <= found.high

    assert held >= 180


def test_neighbours_that_are_alike_make_it_less_sure() -> None:
    wave = [at + 6 * ((at // 8) % 2) for at in range(40)]
    mixed = [at + 6 * (at % 2) for at in range(40)]

    assert trend(range(40), wave).score < trend(range(40), mixed).score


@given(SERIES, WHOLE)
def test_a_constant_on_top_changes_nothing(values: list[int], more: int) -> None:
    plain = trend(range(len(values)), values)
    raised = trend(range(len(values)), [one + more for one in values])

    assert (raised.slope, raised.score) == pytest.approx((plain.slope, plain.score))


@given(SERIES)
def test_the_slope_lies_within_its_interval(values: list[int]) -> None:
    found = trend(range(len(values)), values)

    assert found.low <= found.slope <= found.high


@given(SERIES)
def test_a_series_upside_down_falls_as_it_rose(values: list[int]) -> None:
    up = trend(range(len(values)), values)
    down = trend(range(len(values)), [-one for one in values])

    assert (down.slope, down.score) == pytest.approx((-up.slope, -up.score))
