"""The curve with which a search begins meets the limit where the estimate does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.estimating.start import MOST_LOOKS, start_curve
from oomdoctor.search.axes import Axis

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = float(1 << 30)
BATCH = Axis(name="batch", low=1, high=512)
SEQ = Axis(name="seq", low=64, high=8192, step=64, growth="quadratic")


def edge(axis: Axis, peak: Callable[[float], float], limit: float) -> int:
    """Return how many values of an axis fit."""
    return sum(peak(axis.value(at)) <= limit for at in range(axis.count))


@given(
    constant=st.floats(0, 20), row=st.floats(0.01, 2), later=st.floats(0, 2), limit=st.floats(1, 80)
)
def test_a_peak_that_bends_is_met_within_a_row(
    constant: float, row: float, later: float, limit: float
) -> None:
    # the highest of two phases: each a line, so that the peak bends where they meet
    looks: list[float] = []

    def peak(rows: float) -> float:
        looks.append(rows)
        return GIB * max(constant + row * rows, later * rows)

    curve = start_curve(BATCH, peak, limit * GIB, quantity="reserved")
    count = len(looks)

    assert count <= MOST_LOOKS
    assert curve.linear >= 0
    found, expected = edge(BATCH, curve.at, limit * GIB), edge(BATCH, peak, limit * GIB)
    assert found == pytest.approx(expected, abs=max(2, 0.15 * expected))


def test_a_square_is_met_exactly() -> None:
    def peak(tokens: float) -> float:
        return 2 * GIB + 1e6 * tokens + 600 * tokens * tokens

    curve = start_curve(SEQ, peak, 24 * GIB, quantity="reserved")

    assert edge(SEQ, curve.at, 24 * GIB) == edge(SEQ, peak, 24 * GIB)
    assert curve.quadratic == pytest.approx(600, rel=1e-3)


def test_without_a_limit_the_curve_is_that_of_the_whole_axis() -> None:
    curve = start_curve(BATCH, lambda rows: GIB * (1 + rows), None, quantity="reserved")

    assert curve.at(100) == pytest.approx(101 * GIB)


def test_a_falling_axis_has_a_curve_that_falls() -> None:
    axis = Axis(name="accumulation", low=1, high=64, rising=False)

    curve = start_curve(axis, lambda parts: GIB * (1 + 64 / parts), 5 * GIB, quantity="reserved")

    assert curve.at(16) == pytest.approx(5 * GIB)
    assert curve.at(64) < curve.at(1)


def test_one_value_has_a_flat_curve() -> None:
    axis = Axis(name="batch", low=8, high=8, step=8)

    assert start_curve(axis, lambda _: GIB, 2 * GIB, quantity="reserved").at(8) == GIB
