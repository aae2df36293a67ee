"""A scaled twin is to its cap what the job is to its own."""

from __future__ import annotations

import pytest

from oomdoctor.lab.job_trial import JobBackend
from oomdoctor.lab.twin import scaled, twin_of
from oomdoctor.memory.few_layers import layers_of
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.model.trial import CRASH, FIT, PhasePeak, TrialResult, TrialSpec
from oomdoctor.record import replace

GIB = 1 << 30
CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "vocab_size": 32_000,
}
JOB = Job(model=ModelSpec(name="m", config=CONFIG, source="test"), batch=4, seq_len=512)


def peak(job: Job) -> int:
    return max(one.allocated_bytes for one in peak_by_formula(job).phases)


def test_a_twin_keeps_a_quarter_of_the_layers_and_the_ratio_of_need_to_cap() -> None:
    twin = twin_of(JOB, 24 * GIB)

    assert twin is not None
    assert layers_of(twin.job) == 6
    assert peak(twin.job) / twin.cap_bytes == pytest.approx(peak(JOB) / (24 * GIB), rel=1e-6)


def test_figures_of_a_twin_are_said_to_be_inferred_and_are_those_of_the_job() -> None:
    twin = twin_of(JOB, 24 * GIB)
    assert twin is not None
    phase = PhasePeak(name="step 1", allocated_bytes=GIB, reserved_bytes=GIB, device_bytes=GIB)
    told = TrialResult(
        key="k",
        values={},
        backend="cuda-twin",
        outcome=FIT,
        phases=(phase,),
        allocated_bytes=GIB,
        reserved_bytes=GIB,
        device_bytes=GIB,
        tokens_per_second=5.0,
    )

    result = scaled(told, twin)

    assert result.allocated_bytes == result.phases[0].allocated_bytes == int(GIB / twin.ratio)
    assert (result.device_bytes, result.tokens_per_second) == (None, None)
    assert result.assumptions[0].startswith("inferred from a twin of 6 of 24 layers")


@pytest.mark.parametrize(
    ("job", "cap", "why"),
    [
        (JOB, None, "it has no cap"),
        (
            replace(JOB, model=replace(JOB.model, config={**CONFIG, "num_hidden_layers": 2})),
            GIB,
            "its layers cannot be made fewer",
        ),
    ],
)
def test_a_job_without_a_twin_is_not_run_as_something_else(
    job: Job, cap: int | None, why: str
) -> None:
    spec = TrialSpec(values={}, job=job, cap_bytes=cap)

    result = JobBackend("cuda-twin").run(spec, lambda _: None)

    assert result.outcome == CRASH
    assert why in result.reason
