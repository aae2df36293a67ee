"""The edge on one axis: what its bracket promises, how many trials it takes, what stops it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import (
    FIT,
    OOM,
    Curve,
    TrialResult,
)
from oomdoctor.record import replace
from oomdoctor.search.axes import QUADRATIC, Axis
from oomdoctor.search.edge import LARGEST_JUMP, find_edge, most_trials
from oomdoctor.search.rounds import Ask, Stopped, run
from tests.unit.search.trials import BATCH, CAP, EDGE, GIB, LINEAR, by, fits_up_to, linear, result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.trial import Value


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    step = draw(st.sampled_from([1, 1, 8, 0.25]))
    first = draw(st.integers(1, 40))
    return Axis(
        name="x",
        low=first * step,
        high=(first + draw(st.integers(0, 700))) * step,
        step=step,
        integer=step >= 1,
        rising=draw(st.booleans()),
        growth=draw(st.sampled_from(["linear", QUADRATIC])),
    )


@st.composite
def searches(draw: st.DrawFn) -> tuple[Axis, int, dict[str, object], Callable[[Ask], TrialResult]]:
    """Draw an axis, how many of its values fit, what a search is told, and any peaks at all."""
    axis = draw(axes())
    fitting = draw(st.integers(0, axis.count))
    told: dict[str, object] = {
        "width": draw(st.sampled_from([1, 1, 2, 4])),
        "cap_bytes": draw(st.none() | st.integers(1, 1000)),
        "estimate": draw(st.none() | st.builds(_curve, st.floats(0, 900), st.floats(0, 10))),
    }
    wild = draw(st.randoms(use_true_random=False))
    honest = draw(st.booleans())

    def trial(ask: Ask) -> TrialResult:
        position = axis.position(float(ask.values["x"]))
        peak = position + 10 if honest else wild.randrange(0, 1000)
        return result(ask, FIT if position < fitting else OOM, peak)

    return axis, fitting, told, trial


def _curve(constant: float, linear: float) -> Curve:
    return Curve(axis="x", quantity="reserved", constant=constant, linear=linear)


@given(searches())
def test_the_bracket_is_the_edge_whatever_the_peaks_say(
    search: tuple[Axis, int, dict[str, object], Callable[[Ask], TrialResult]],
) -> None:
    axis, fitting, told, trial = search

    answer = run(find_edge(axis, **told), trial)

    bracket = answer.bracket
    expected_fit = axis.value(fitting - 1) if fitting else None
    expected_oom = axis.value(fitting) if fitting < axis.count else None
    assert (expected_fit, expected_oom) == (bracket.fits_at, bracket.ooms_at)
    assert bracket.proven
    assert answer.stopped is None
    fits = [one for one in answer.trials if one.values["x"] == expected_fit]
    assert (fitting > 0) * 2 == len(fits)
    assert bracket.fits == len(fits)


@given(searches())
def test_a_search_takes_a_logarithmic_number_of_rounds(
    search: tuple[Axis, int, dict[str, object], Callable[[Ask], TrialResult]],
) -> None:
    axis, _, told, trial = search

    answer = run(find_edge(axis, **{**told, "width": 1}), trial)

    assert len(answer.trials) <= most_trials(axis)
    assert most_trials(axis) <= 2 * math.log2(axis.count + 1) + 14


@given(searches(), st.integers(0, 12))
def test_an_interrupted_search_gives_the_best_so_far(
    search: tuple[Axis, int, dict[str, object], Callable[[Ask], TrialResult]], trials: int
) -> None:
    axis, _, told, trial = search
    rounds = find_edge(axis, **told)
    seen: list[TrialResult] = []
    try:
        asks = next(rounds)
        while len(seen) < trials:
            results = tuple(trial(one) for one in asks)
            seen += results
            asks = rounds.send(results)
        rounds.throw(Stopped("the budget is spent"))
    except StopIteration as end:
        answer = end.value

    fits = [axis.position(float(t.values["x"])) for t in seen if t.outcome == FIT]
    assert tuple(seen) == answer.trials
    assert answer.bracket.proven or answer.stopped == "the budget is spent"
    assert (axis.value(max(fits)) if fits else None) == answer.bracket.fits_at


@given(searches())
def test_a_round_asks_for_no_more_than_may_run_side_by_side(
    search: tuple[Axis, int, dict[str, object], Callable[[Ask], TrialResult]],
) -> None:
    axis, _, told, trial = search
    rounds = find_edge(axis, **told)
    asked: set[tuple[object, int]] = set()
    asks: tuple[Ask, ...] | None = next(rounds)
    while asks:
        mine = {(one.values["x"], one.repeat) for one in asks}
        assert len(asks) <= int(str(told["width"]))
        assert len(mine) == len(asks)
        assert not mine & asked
        asked |= mine
        try:
            asks = rounds.send(tuple(trial(one) for one in asks))
        except StopIteration:
            asks = None


def test_with_an_exact_estimate_three_trials_prove_the_edge() -> None:
    answer = run(
        find_edge(BATCH, cap_bytes=CAP, estimate=LINEAR, error=0.01),
        by(FormulaBackend(linear, cap_bytes=CAP)),
    )

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (EDGE, EDGE + 1)
    assert len(answer.trials) == 3


def test_without_an_estimate_the_first_trials_are_small() -> None:
    answer = run(find_edge(BATCH, cap_bytes=CAP), by(FormulaBackend(linear, cap_bytes=CAP)))

    tried = [float(one.values["batch"]) for one in answer.trials]
    assert tried[0] == 1
    assert tried[1] <= LARGEST_JUMP
    assert len(tried) <= 6
    assert answer.bracket.fits_at == EDGE


@pytest.mark.parametrize("largest", [3, 40, 300, 512])
def test_no_trial_is_more_than_eight_times_beyond_what_fits_before_a_forecast_held(
    largest: int,
) -> None:
    for trial, cap in ((fits_up_to(largest), None), (on_a_floor_up_to(largest), CAP)):
        answer = run(find_edge(replace(BATCH, high=4096), cap_bytes=cap), trial)

        fits = 1.0
        for one in answer.trials:
            assert float(one.values["batch"]) <= LARGEST_JUMP * fits
            fits = max(fits, float(one.values["batch"])) if one.outcome == FIT else fits


def on_a_floor_up_to(largest: int) -> Callable[[Ask], TrialResult]:
    """Return trials whose peak says nothing of where it will grow."""
    return lambda ask: result(
        ask, FIT if float(ask.values["batch"]) <= largest else OOM, CAP // 2 - 1
    )


def test_the_safe_value_leaves_the_headroom() -> None:
    answer = run(
        find_edge(BATCH, cap_bytes=CAP, headroom=0.10), by(FormulaBackend(linear, cap_bytes=CAP))
    )

    assert answer.safe_value is not None
    assert linear({"batch": answer.safe_value}) <= 0.9 * CAP
    assert linear({"batch": answer.safe_value + 1}) > 0.9 * CAP


def test_the_curve_goes_through_the_points() -> None:
    answer = run(find_edge(BATCH, cap_bytes=CAP), by(FormulaBackend(linear, cap_bytes=CAP)))

    assert answer.curve is not None
    assert answer.curve.linear == pytest.approx(0.53 * GIB, rel=1e-6)
    assert answer.curve.constant == pytest.approx(4 * GIB, rel=1e-6)
    assert answer.curve.points[0] == (1, round(linear({"batch": 1})))


def test_a_floor_misleads_neither_the_search_nor_its_curve() -> None:
    def peak(values: Mapping[str, Value]) -> float:
        return max(18 * GIB, linear(values))

    answer = run(find_edge(BATCH, cap_bytes=CAP), by(FormulaBackend(peak, cap_bytes=CAP)))

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (EDGE, EDGE + 1)
    assert len(answer.trials) <= 12
    assert answer.curve is not None
    assert answer.curve.floor == pytest.approx(18 * GIB)
    assert answer.curve.linear == pytest.approx(0.53 * GIB, rel=0.01)
    assert answer.curve.residual_bytes < GIB / 100


def test_a_curve_through_a_single_point_says_that_it_is_an_estimate() -> None:
    known = find_edge(BATCH, cap_bytes=CAP, estimate=LINEAR, error=0.001)
    told = run(known, by(FormulaBackend(linear, cap_bytes=CAP))).curve
    fitted = run(find_edge(BATCH, cap_bytes=CAP), by(FormulaBackend(linear, cap_bytes=CAP))).curve

    assert told is not None
    assert (len(told.points), told.estimated) == (1, True)
    assert told.at(EDGE) == pytest.approx(told.points[0][1])
    assert fitted is not None
    assert not fitted.estimated


def test_a_value_that_fails_when_it_is_run_again_does_not_fit() -> None:
    def trial(ask: Ask) -> TrialResult:
        fits = float(ask.values["batch"]) < EDGE or (ask.values["batch"] == EDGE and not ask.repeat)
        return result(ask, FIT if fits else OOM, round(linear(ask.values)))

    answer = run(find_edge(BATCH, cap_bytes=CAP, estimate=LINEAR), trial)

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (EDGE - 1, EDGE)
    assert answer.bracket.proven
