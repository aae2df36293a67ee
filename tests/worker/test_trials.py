"""Trials of a job on real tensors of the host, each in a worker of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.lab.job_trial import JobBackend
from oomdoctor.lab.job_values import job_at
from oomdoctor.lab.session import WorkerSession
from oomdoctor.lab.simulate_trial import SimulateBackend
from oomdoctor.model.job import CardSpec
from oomdoctor.model.trial import CRASH, FIT, HOST_OOM, OOM, TIMEOUT, TrialSpec
from oomdoctor.record import replace
from tests.worker.jobs import JOB, PARAMETERS

if TYPE_CHECKING:
    from oomdoctor.model.trial import TrialResult

pytestmark = pytest.mark.slow  # a process that imports torch takes seconds

MIB = 1 << 20
CARD = CardSpec(name="A100", capability=(8, 0), processors=108, total_bytes=80 << 30)


def trial(rows: int, **more: Any) -> TrialSpec:
    job = job_at(JOB, {"batch": rows, "seq": 64})
    return replace(TrialSpec(values={"batch": rows}, job=job), **more)


def run(spec: TrialSpec) -> TrialResult:
    return JobBackend("cpu").run(spec, lambda _: None)


def test_a_trial_that_fits_tells_the_peak_of_every_phase() -> None:
    result = run(trial(2, steps=3, evaluates=True, saves=True))

    assert result.outcome == FIT
    names = [one.name for one in result.phases]
    assert names == ["load", "step 1", "step 2", "step 2", "evaluation", "save"]
    assert result.steps == 3
    assert result.allocated_bytes == max(one.allocated_bytes or 0 for one in result.phases)
    assert result.allocated_bytes > 4 * 4 * PARAMETERS
    assert result.reserved_bytes is None
    assert all(one.host_bytes for one in result.phases)
    assert result.tokens_per_second


def test_a_cap_is_exact_to_the_byte() -> None:
    needed = run(trial(4)).allocated_bytes
    assert needed is not None

    outcomes = [run(trial(4, cap_bytes=cap)).outcome for cap in (needed, needed - 1)]

    assert outcomes == [FIT, OOM]


def test_a_failure_has_the_words_and_the_place_of_a_cards() -> None:
    result = run(trial(64, cap_bytes=60 * MIB))

    assert result.outcome == OOM
    assert result.reason.startswith("CUDA out of memory. Tried to allocate 46.88 MiB.")
    assert result.requested_bytes == int(46.88 * MIB)
    assert result.identity is not None
    assert (result.identity.backend, result.identity.exception) == ("cpu", "OutOfMemoryError")
    assert result.identity.site not in (None, "counted.py:note")
    assert [one.name for one in result.phases] == ["load", "step 1"]
    assert result.steps == 0


def test_a_trial_that_takes_too_long_is_a_time_out() -> None:
    result = run(trial(2, seconds=0.05))

    assert result.outcome == TIMEOUT


def test_a_trial_that_takes_too_much_of_the_host_is_ended_as_that() -> None:
    result = run(trial(2, host_cap_bytes=20 * MIB))

    assert result.outcome == HOST_OOM
    assert result.identity is not None
    assert result.identity.backend == "host"
    assert "of 20.00 MiB given to it" in result.reason


def test_a_job_that_cannot_be_built_is_a_crash_with_its_reason() -> None:
    spec = trial(2)
    model = replace(JOB.model, config={"model_type": "none-of-this-name"})

    result = run(replace(spec, job=replace(JOB, model=model)))

    assert result.outcome == CRASH
    assert "none-of-this-name" in result.reason


def test_a_simulated_trial_agrees_with_its_own_peak_and_says_what_it_is() -> None:
    with WorkerSession() as session:
        backend = SimulateBackend(session, CARD)
        whole = backend.run(trial(4), lambda _: None)
        assert whole.reserved_bytes is not None
        caps = (whole.reserved_bytes, whole.reserved_bytes // 2)
        capped = [backend.run(trial(4, cap_bytes=cap), lambda _: None) for cap in caps]

    assert whole.outcome == FIT
    assert "simulated: traced and replayed, not measured" in whole.assumptions
    assert [one.outcome for one in capped] == [FIT, OOM]
    assert capped[1].identity is not None
