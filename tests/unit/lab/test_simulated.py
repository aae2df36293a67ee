"""The formula back end: outcomes by formula, the same ones every time."""

from __future__ import annotations

import pytest

from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import FIT, HOST_OOM, OOM, TIMEOUT, TrialResult, TrialSpec

GIB = 1 << 30


def run(backend: FormulaBackend, batch: int, **given: int) -> TrialResult:
    return backend.run(TrialSpec(values={"batch": batch}, **given), lambda _text: None)


def linear(**given: object) -> FormulaBackend:
    return FormulaBackend(lambda values: GIB * (4 + int(values["batch"])), **given)


def test_a_trial_fits_up_to_the_cap_and_no_further() -> None:
    backend = linear(cap_bytes=24 * GIB)

    assert [run(backend, batch).outcome for batch in (20, 21)] == [FIT, OOM]
    assert [one.values["batch"] for one in backend.trials] == [20, 21]


def test_a_trials_own_cap_goes_before_that_of_the_back_end() -> None:
    assert run(linear(cap_bytes=24 * GIB), 10, cap_bytes=8 * GIB).outcome == OOM
    assert run(linear(), 500).outcome == FIT


def test_peaks_are_those_of_the_formula_less_what_is_unseen() -> None:
    made = run(linear(cap_bytes=24 * GIB, unseen_bytes=GIB), 8)

    assert (made.reserved_bytes, made.device_bytes) == (11 * GIB, 12 * GIB)
    assert made.allocated_bytes is not None
    assert made.allocated_bytes < 11 * GIB
    assert made.backend == "formula"
    assert made.assumptions


def test_a_failed_trial_tells_what_was_there_and_what_was_asked_for() -> None:
    made = run(linear(cap_bytes=24 * GIB), 30)

    assert made.reserved_bytes is not None
    assert made.requested_bytes is not None
    assert made.reserved_bytes <= 24 * GIB < made.reserved_bytes + made.requested_bytes
    assert made.identity is not None
    assert made.identity.exception == "OutOfMemoryError"


def test_noise_is_bounded_differs_by_repeat_and_comes_again_with_the_seed() -> None:
    def peaks(seed: int) -> list[int | None]:
        backend = linear(noise_bytes=GIB / 8, seed=seed)
        return [run(backend, 4, repeat=one).reserved_bytes for one in range(20)]

    assert peaks(1) == peaks(1)
    assert peaks(1) != peaks(2)
    assert len(set(peaks(1))) == 20
    assert all(abs((one or 0) - 8 * GIB) <= GIB / 8 for one in peaks(1))


def test_the_host_runs_out_by_its_own_formula() -> None:
    backend = linear(cap_bytes=24 * GIB, host=(lambda values: GIB * int(values["batch"]), 6 * GIB))

    assert [run(backend, batch).outcome for batch in (6, 7, 21)] == [FIT, HOST_OOM, OOM]
    assert run(backend, 7, host_cap_bytes=8 * GIB).outcome == FIT
    assert run(backend, 6).host_bytes == 6 * GIB


def test_speed_is_tokens_by_seconds() -> None:
    made = run(linear(speed=lambda values: (2048 * int(values["batch"]), 0.5)), 4)

    assert (made.step_seconds, made.tokens_per_second) == (0.5, 16384)


def test_an_outcome_may_be_prescribed_and_no_other_word_is_one() -> None:
    backend = linear(outcome=lambda values: TIMEOUT if values["batch"] == 3 else None)

    assert [run(backend, batch).outcome for batch in (2, 3)] == [FIT, TIMEOUT]
    with pytest.raises(ValueError, match="no outcome of a trial: 'slow'"):
        run(linear(outcome=lambda _values: "slow"), 1)
