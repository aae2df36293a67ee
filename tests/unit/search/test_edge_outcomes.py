"""The edge on other axes, and with trials that fail otherwise or tell nothing."""

from __future__ import annotations

import pytest

from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import CRASH, FIT, HOST_OOM, OOM, REFUSED, OomIdentity, TrialResult
from oomdoctor.search.axes import HOST, Axis, axis_named
from oomdoctor.search.edge import find_edge
from oomdoctor.search.rounds import Ask, run
from tests.unit.search.trials import BATCH, CAP, EDGE, GIB, IDENTITY, LINEAR, by, linear, result


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
