"""The course of a series: rising, level, levelled off, slowing down, teeth."""

from __future__ import annotations

from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.growth.course import Course, Growth, growth_of
from oomdoctor.growth.points import Point
from tests.unit.growth.made import GIB, MIB, noise, series

SOME = noise(20 * MIB)


def course(points: list[Point], least_bytes: int = MIB) -> Growth:
    found = growth_of(points, least_bytes=least_bytes)
    assert found is not None
    return found


def test_what_is_kept_at_each_step_rises() -> None:
    found = course(series(lambda n: GIB + 5 * MIB * n + SOME(n)))

    assert found.course is Course.RISING
    assert found.slope == pytest.approx(5 * MIB, rel=0.02)
    assert found.low <= 5 * MIB <= found.high


def test_steps_that_are_told_together_lie_on_the_same_line() -> None:
    numbers = [*range(1, 21), 27, 31, 39, 45]
    points = [Point(n, n / 100, GIB + 1600 * MIB * n, 9 * GIB + 1600 * MIB * n) for n in numbers]

    found = course(points)

    assert (found.course, found.slope) == (Course.RISING, 1600 * MIB)


def test_a_rise_that_is_hardly_beyond_chance_is_not_called_level() -> None:
    wide = noise(120 * MIB, seed=2)

    found = course(series(lambda n: GIB + 4 * MIB * n + wide(n), count=36))

    assert found.course in (Course.UNSURE, Course.RISING)


def test_the_first_points_are_too_few() -> None:
    assert course(series(lambda n: GIB + 5 * MIB * n, count=12)).course is Course.EARLY


def test_a_step_at_the_start_is_warm_up() -> None:
    found = course(series(lambda n: GIB + 3 * GIB * (n >= 20) + SOME(n)))

    assert found.course is Course.LEVELLED
    assert 14 <= found.since <= 35


def test_a_rise_behind_a_warm_up_counts_from_there() -> None:
    found = course(series(lambda n: GIB + 3 * GIB * (n >= 20) + 4 * MIB * n + SOME(n)))

    assert found.course is Course.RISING
    assert found.slope == pytest.approx(4 * MIB, rel=0.05)


def test_a_rise_that_begins_late_is_found_from_its_foot() -> None:
    found = course(series(lambda n: GIB + 8 * MIB * max(0, n - 100) + SOME(n), count=300))

    assert found.course is Course.RISING
    assert found.since == pytest.approx(108, abs=12)
    assert found.slope == pytest.approx(8 * MIB, rel=0.05)


def test_a_cache_that_is_full_has_levelled_off() -> None:
    found = course(series(lambda n: GIB + 10 * MIB * min(n, 80) + SOME(n)))

    assert found.course is Course.LEVELLED


def test_a_rise_that_gets_ever_slower_is_none() -> None:
    for count in (100, 150, 200, 300):
        found = course(series(lambda n: GIB + GIB * (1 - exp(-n / 60)) + SOME(n), count=count))

        assert not found.rises


def test_teeth_are_no_rise() -> None:
    found = course(series(lambda n: GIB + 20 * MIB * (n % 50) + SOME(n)))

    assert found.course is Course.TEETH


def test_teeth_on_a_slope_rise() -> None:
    found = course(series(lambda n: GIB + 12 * MIB * (n % 40) + 2 * MIB * n, count=600))

    assert found.course is Course.RISING
    assert found.slope == pytest.approx(2 * MIB, rel=0.15)


def test_stairs_at_each_epoch_rise() -> None:
    found = course(series(lambda n: GIB + 100 * MIB * (n // 20) + SOME(n)))

    assert found.course is Course.RISING
    assert found.slope == pytest.approx(5 * MIB, rel=0.1)


def test_one_stair_late_is_no_rise() -> None:
    found = course(series(lambda n: GIB + 100 * MIB * (n > 150)))

    assert not found.rises


def test_a_rise_below_the_least_bytes_is_none() -> None:
    points = series(lambda n: GIB + 1000 * n)

    assert course(points, least_bytes=MIB).course is Course.LEVEL
    assert course(points, least_bytes=1000).course is Course.RISING


def test_no_points_have_no_course() -> None:
    assert growth_of([], least_bytes=MIB) is None


@settings(max_examples=60, deadline=None)
@given(
    base=st.integers(MIB, 80 * GIB),
    each=st.integers(MIB // 4, 500 * MIB),
    count=st.integers(24, 900),
)
def test_the_same_at_each_step_always_rises(base: int, each: int, count: int) -> None:
    found = course(series(lambda n: base + each * n, count=count))

    assert found.course is Course.RISING
    assert found.slope == pytest.approx(each, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    base=st.integers(MIB, 80 * GIB),
    wide=st.integers(0, 4 * GIB),
    count=st.integers(8, 900),
    seed=st.integers(0, 5),
)
def test_noise_alone_never_rises(base: int, wide: int, count: int, seed: int) -> None:
    some = noise(wide, seed)

    assert not course(series(lambda n: base + some(n), count=count)).rises


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=300), st.integers(0, 1 << 40))
def test_a_constant_on_top_changes_no_course(values: list[int], more: int) -> None:
    plain = [Point(n, n, one, one) for n, one in enumerate(values, 1)]
    raised = [Point(n, n, one + more, one + more) for n, one in enumerate(values, 1)]

    assert course(plain).course is course(raised).course


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=300))
def test_what_falls_all_along_never_rises(values: list[int]) -> None:
    falling = sorted(values, reverse=True)

    assert not course([Point(n, n, one, one) for n, one in enumerate(falling, 1)]).rises
