"""The edge on one axis: what its bracket promises, how many trials it takes, what stops it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import (
    CRASH,
    FIT,
    HOST_OOM,
    OOM,
    REFUSED,
    Curve,
    OomIdentity,
    TrialResult,
)
from oomdoctor.search.axes import HOST, QUADRATIC, Axis, axis_named
from oomdoctor.search.edge import LARGEST_JUMP, find_edge, most_trials
from oomdoctor.search.rounds import Ask, Stopped, run
from tests.unit.search.trials import GIB, IDENTITY, by, fits_up_to, result

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = Axis(name="batch", low=1, high=512)
CAP = 24 * GIB


def linear(values: object) -> float:
    return 4 * GIB + 0.53 * GIB * float(values["batch"])


LINEAR = Curve(axis="batch", quantity="reserved", constant=4 * GIB, linear=0.53 * GIB)
EDGE = 37  # of LINEAR at CAP


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
    answer = run(find_edge(BATCH), fits_up_to(largest))

    fits = 1.0
    for one in answer.trials:
        assert float(one.values["batch"]) <= LARGEST_JUMP * fits
        fits = max(fits, float(one.values["batch"])) if one.outcome == FIT else fits


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


def test_an_axis_that_falls_ends_at_the_smallest_value_that_fits() -> None:
    axis = Axis(name="accumulation", low=1, high=64, rising=False)
    backend = FormulaBackend(
        lambda values: 4 * GIB + 90 * GIB / float(values["accumulation"]), cap_bytes=CAP
    )

    answer = run(find_edge(axis, cap_bytes=CAP), by(backend))

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (5, 4)
    assert answer.curve is not None
    assert answer.curve.at(8) == pytest.approx(4 * GIB + 90 * GIB / 8, rel=1e-3)
    assert (answer.safe_value or 0) >= 5


def test_an_axis_of_fractions_has_values_without_rounding_errors() -> None:
    axis = axis_named("gpu_memory_utilization")
    backend = FormulaBackend(
        lambda values: 80 * GIB * float(values["gpu_memory_utilization"]), cap_bytes=74 * GIB
    )

    answer = run(find_edge(axis, cap_bytes=74 * GIB), by(backend))

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (0.92, 0.93)
    assert {one.values[axis.name] for one in answer.trials} <= {k / 100 for k in range(50, 99)}


@pytest.mark.parametrize("outcome", [CRASH, "timeout"])
def test_a_trial_that_tells_nothing_is_gone_around(outcome: str) -> None:
    def trial(ask: Ask) -> TrialResult:
        if ask.values["batch"] == EDGE + 2:
            return result(ask, outcome)
        fits = float(ask.values["batch"]) <= EDGE
        return result(ask, FIT if fits else OOM, round(linear(ask.values)))

    started = LINEAR.at(EDGE + 2.4)
    answer = run(find_edge(BATCH, cap_bytes=started, estimate=LINEAR, error=0.001), trial)

    assert outcome in {one.outcome for one in answer.trials}
    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (EDGE, EDGE + 1)
    assert answer.bracket.proven


def test_where_only_a_crash_is_left_the_bracket_stays_open_and_says_why() -> None:
    def trial(ask: Ask) -> TrialResult:
        value = float(ask.values["batch"])
        outcome = CRASH if value == EDGE + 1 else FIT if value <= EDGE else OOM
        return result(ask, outcome, round(linear(ask.values)))

    answer = run(find_edge(BATCH, cap_bytes=CAP, estimate=LINEAR), trial)

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (EDGE, EDGE + 2)
    assert not answer.bracket.proven
    assert answer.stopped is not None
    assert "batch 38 ended as crash" in answer.stopped


def test_a_search_in_which_every_trial_crashes_ends_soon() -> None:
    answer = run(find_edge(BATCH), lambda ask: result(ask, CRASH))

    assert len(answer.trials) <= 3
    assert answer.bracket.fits_at is None
    assert not answer.bracket.proven
    assert answer.stopped is not None


def test_a_refused_trial_ends_the_search() -> None:
    answer = run(find_edge(BATCH), lambda ask: result(ask, REFUSED))

    assert len(answer.trials) == 1
    assert answer.stopped == REFUSED


def test_running_out_of_host_memory_is_no_edge_of_an_axis_of_the_device() -> None:
    host = OomIdentity(backend="host", exception="SIGKILL")

    def trial(ask: Ask) -> TrialResult:
        value = float(ask.values["batch"])
        if value >= 100:
            return result(ask, HOST_OOM, identity=host)
        return result(ask, FIT if value <= EDGE else OOM, round(linear(ask.values)))

    answer = run(find_edge(BATCH, cap_bytes=LINEAR.at(120), estimate=LINEAR), trial)

    assert answer.slipped
    assert {HOST_OOM} == {one.outcome for one in answer.slipped}
    assert answer.bracket.fits_at == EDGE


def test_running_out_of_host_memory_is_the_edge_of_an_axis_of_the_host() -> None:
    axis = Axis(name="workers", low=0, high=64, memory=HOST)
    host = OomIdentity(backend="host", exception="SIGKILL")

    def trial(ask: Ask) -> TrialResult:
        value = int(ask.values["workers"])
        need = (2 + 3 * value) * GIB
        return result(ask, FIT if need <= 32 * GIB else HOST_OOM, 0, host, need)

    answer = run(find_edge(axis, cap_bytes=32 * GIB), trial)

    assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (10, 11)
    assert answer.curve is not None
    assert (answer.curve.quantity, round(answer.curve.linear / GIB)) == ("host", 3)


def test_a_failure_elsewhere_is_reported_and_one_of_another_kind_proves_nothing() -> None:
    other = OomIdentity(backend="nccl", exception="DistBackendError", site="model.py:forward")

    def trial(ask: Ask) -> TrialResult:
        value = float(ask.values["batch"])
        identity = IDENTITY if value > EDGE + 1 else other
        return result(ask, FIT if value <= EDGE else OOM, round(linear(ask.values)), identity)

    answer = run(find_edge(BATCH, cap_bytes=LINEAR.at(60), estimate=LINEAR), trial)

    assert [other] == [one.identity for one in answer.slipped]
    assert not answer.bracket.proven


def test_a_cap_that_is_wrong_is_learnt_from_the_trials() -> None:
    axis = Axis(name="batch", low=1, high=4096)
    true_cap = 4 * GIB + round(0.53 * GIB * 3000.5)
    counts = {}
    for told in (0.97, 1.0, 1.03):
        backend = FormulaBackend(linear, cap_bytes=true_cap)
        answer = run(
            find_edge(axis, cap_bytes=round(true_cap * told), estimate=LINEAR), by(backend)
        )
        assert (answer.bracket.fits_at, answer.bracket.ooms_at) == (3000, 3001)
        counts[told] = len(answer.trials)

    assert max(counts.values()) <= 16
