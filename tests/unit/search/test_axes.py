"""Axes: which values they have, in which order, and what they say of ranges that cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.errors import UsageError
from oomdoctor.search.axes import HOST, QUADRATIC, Axis, axis_named


def values(axis: Axis) -> list[float]:
    return [axis.value(one) for one in range(axis.count)]


def test_values_are_the_multiples_of_the_step_within_the_range() -> None:
    assert values(Axis(name="x", low=1, high=30, step=8)) == [8, 16, 24]
    assert values(Axis(name="workers", low=0, high=2)) == [0, 1, 2]
    fractions = Axis(name="x", low=0.1, high=0.5, step=0.1, integer=False)
    assert values(fractions) == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_an_axis_that_falls_begins_at_its_highest_value() -> None:
    axis = Axis(name="x", low=1, high=4, rising=False)

    assert values(axis) == [4, 3, 2, 1]
    assert [axis.load(4), axis.load(1)] == [1, 4]


@given(st.integers(1, 50), st.integers(0, 200), st.sampled_from([1, 8, 0.25]), st.booleans())
def test_a_value_knows_its_position(first: int, more: int, step: float, rising: bool) -> None:
    axis = Axis(
        name="x",
        low=first * step,
        high=(first + more) * step,
        step=step,
        integer=step >= 1,
        rising=rising,
    )

    assert list(range(more + 1)) == [axis.position(one) for one in values(axis)]


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (Axis(name="x", low=9, high=15, step=16), "no multiple of 16"),
        (Axis(name="x", low=5, high=4), "no multiple of 1"),
        (Axis(name="x", low=1, high=4, step=0), "step has to be above 0"),
        (Axis(name="x", low=1.5, high=4), "whole numbers"),
        (Axis(name="x", low=0, high=float("inf")), "plain numbers"),
        (Axis(name="x", low=0, high=4, rising=False), "begin above 0"),
    ],
)
def test_a_range_without_a_value_is_refused(axis: Axis, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        axis.check()


def test_a_value_that_is_none_of_the_axis_is_refused() -> None:
    with pytest.raises(UsageError, match="12 is no value of axis x"):
        Axis(name="x", low=8, high=32, step=8).position(12)


def test_names_that_people_use_tell_how_memory_grows() -> None:
    assert axis_named("max_length", 512, 4096).growth == QUADRATIC
    assert axis_named("num_workers", 0, 8).memory == HOST
    assert not axis_named("accumulation").rising
    assert axis_named("gpu_memory_utilization", 0.5, 0.95).step == 0.01
    assert not axis_named("share", 0.5, 0.95, 0.05).integer


def test_ends_that_are_no_multiples_of_the_usual_step_are_kept() -> None:
    assert axis_named("seq", 512, 4096).step == 64
    assert axis_named("seq", 100, 4095).step == 1
    assert axis_named("seq", 100, 4095).value(0) == 100


def test_a_name_nobody_knows_needs_a_range() -> None:
    with pytest.raises(UsageError, match="axis frobs: no range is known") as error:
        axis_named("frobs")
    assert "frobs=1..512" in str(error.value)
