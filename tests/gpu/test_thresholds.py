"""The edge that a search finds on a card is that of trying every value around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.lab.job_trial import JobBackend
from oomdoctor.lab.job_values import job_at
from oomdoctor.model.job import Job, LoraSpec, ModelSpec
from oomdoctor.model.trial import FIT, OOM, TrialSpec
from oomdoctor.search.axes import axis_named
from oomdoctor.search.edge import find_edge
from oomdoctor.search.rounds import run

if TYPE_CHECKING:
    from oomdoctor.model.trial import TrialResult, Value
    from oomdoctor.search.rounds import Ask

GIB = 1 << 30
GPT2 = ModelSpec(
    name="gpt2-sized",
    config={"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50_257},
    source="test",
)
HALF_B = ModelSpec(
    name="0.5B",
    config={
        "model_type": "qwen2",
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "vocab_size": 151_936,
        "tie_word_embeddings": True,
    },
    source="test",
)
JOBS = {
    "batch of GPT-2": (Job(model=GPT2, seq_len=512, dtype="fp32", amp="bf16"), "batch", 1, 64, 1),
    "length of 0.5B": (
        Job(
            model=HALF_B,
            method="lora",
            lora=LoraSpec(targets=("q_proj", "v_proj")),
            checkpointing="non-reentrant",
        ),
        "seq",
        64,
        8192,
        64,
    ),
}
CAP = 6 * GIB


class Trials:
    """Runs the values of a job, each once."""

    def __init__(self, job: Job, backend: str = "cuda") -> None:
        """Know nothing yet."""
        self.job = job
        self.backend = backend
        self.known: dict[tuple[tuple[str, Value], ...], TrialResult] = {}

    def __call__(self, ask: Ask) -> TrialResult:
        return self.at(dict(ask.values))

    def at(self, values: dict[str, Value]) -> TrialResult:
        key = tuple(values.items())
        if key not in self.known:
            spec = TrialSpec(values=values, job=job_at(self.job, values), cap_bytes=CAP)
            self.known[key] = JobBackend(self.backend).run(spec, lambda _: None)
        return self.known[key]


@pytest.mark.parametrize("name", JOBS)
def test_the_threshold_of_a_job_is_that_of_a_scan(torch: Any, name: str) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    del torch
    job, axis_name, low, high, step = JOBS[name]
    trials = Trials(job)
    axis = axis_named(axis_name, low=low, high=high, step=step)

    bracket = run(find_edge(axis, cap_bytes=CAP), trials).bracket

    assert bracket.proven
    assert bracket.fits_at is not None
    around = [int(bracket.fits_at) + k * step for k in range(-1, 3)]
    outcomes = {value: trials.at({axis_name: value}).outcome for value in around}
    assert list(outcomes.values()) == [FIT, FIT, OOM, OOM]


def test_a_scaled_twin_finds_about_the_threshold_of_the_job(torch: Any) -> None:
    pytest.importorskip("transformers")
    del torch
    job, name, low, high, step = JOBS["batch of GPT-2"]
    axis = axis_named(name, low=low, high=high, step=step)

    edges = [
        run(find_edge(axis, cap_bytes=CAP), Trials(job, backend)).bracket.fits_at
        for backend in ("cuda", "cuda-twin")
    ]

    assert edges[0] is not None
    assert edges[1] == pytest.approx(edges[0], rel=0.15)
