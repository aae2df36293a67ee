"""Fits: coefficients that are not negative, and how far noise moves them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.search.axes import QUADRATIC, Axis
from oomdoctor.search.fit import fitted, spread
from oomdoctor.search.forecast import Cap, fit_of, forecast

SEQ = Axis(name="seq", low=512, high=65536, step=64, growth=QUADRATIC)
BATCH = Axis(name="batch", low=1, high=512)
POSITIVE = st.floats(0, 1e4)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_a_curve_of_the_kind_is_found_again(a: float, b: float, c: float) -> None:
    rows = [(1.0, x, x * x) for x in (1.0, 4.0, 9.0, 16.0)]

    found = fitted(rows, [a + b * x + c * x * x for _, x, _ in rows])

    assert found is not None
    for row in rows:
        expected = a + b * row[1] + c * row[2]
        assert found.at(row) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(0, 1e12)), min_size=1, max_size=7))
def test_no_coefficient_is_negative(points: list[tuple[float, float]]) -> None:
    found = fitted([(1.0, x, x * x) for x, _ in points], [y for _, y in points])

    assert found is not None
    assert min(found.coefficients) >= 0


def test_peaks_that_fall_are_fitted_by_a_constant() -> None:
    found = fitted([(1.0, 1.0), (1.0, 2.0)], [10.0, 8.0])

    assert found is not None
    assert found.coefficients == (9.0, 0.0)
    assert found.residual == 1.0


def test_noise_grows_with_the_distance_from_the_points() -> None:
    rows = [(1.0, 1.0), (1.0, 2.0)]

    near, far = spread(rows, (1.0, 3.0)), spread(rows, (1.0, 30.0))

    assert near is not None
    assert far is not None
    assert near < far
    assert spread(rows[:1], (1.0, 3.0)) is None


def test_two_points_of_a_curve_that_may_bend_leave_the_edge_open() -> None:
    points = [(0, 10.0), (24, 13.0)]

    found = forecast(SEQ, points, Cap(40.0))

    assert found is not None
    # 512 and 2,048: straight meets 40 at 15,872, all square at 6,585
    square, straight = ((value - 512) / 64 for value in (6585, 15872))
    assert found.edge == pytest.approx((square + straight) / 2, rel=0.02)
    assert found.error >= 0.98 * (straight - square) / 2


def test_a_single_point_without_an_estimate_foretells_nothing() -> None:
    assert forecast(SEQ, [(0, 10.0)], Cap(40.0)) is None


def floored(batch: float) -> float:
    return max(223.0, 120.0 + 12.8 * batch)


def test_a_phase_that_does_not_grow_is_a_floor_of_the_curve() -> None:
    points = [(one - 1, floored(one)) for one in (1, 2, 6, 9, 12)]

    found = fit_of(BATCH, points)

    assert found is not None
    assert found.floor == 223.0
    assert found.fit.coefficients == pytest.approx((120.0, 12.8))
    assert [floored(9), floored(12)] == [peak for _, peak in found.points]


def test_peaks_that_grow_evenly_have_no_floor_however_slowly_they_grow() -> None:
    points = [(one - 1, 40_000 + 10.0 * one) for one in (1, 2, 64)]

    found = fit_of(BATCH, points)

    assert found is not None
    assert found.floor == 0
    assert found.fit.coefficients == pytest.approx((40_000, 10.0))


def test_where_growth_has_just_begun_the_edge_is_near_and_uncertain() -> None:
    points = [(one - 1, floored(one)) for one in (1, 2, 6, 9)]

    found = forecast(BATCH, points, Cap(300.0))

    assert found is not None
    # the line from 6 to 9 meets 300 at batch 26; the peak itself does so at 14
    assert 13 <= found.edge + 1 <= 20
    assert found.error >= 4
