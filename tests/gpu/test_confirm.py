"""Causes are confirmed on a card, under a cap between what the job needs as it is and without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.experiments.arms import Subject, treated_spec
from oomdoctor.experiments.plan import Suspect, plan
from oomdoctor.experiments.trials import Trials
from oomdoctor.lab.job_trial import JobBackend
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.model.trial import CONFIRMED, TrialSpec
from oomdoctor.record import replace
from oomdoctor.search.rounds import run

if TYPE_CHECKING:
    from oomdoctor.model.trial import TrialResult
    from oomdoctor.search.rounds import Ask

SMALL = ModelSpec(
    name="small",
    config={"model_type": "gpt2", "n_layer": 8, "n_head": 8, "n_embd": 512, "vocab_size": 1024},
    source="test",
)
JOBS = {
    "attention-not-flash": Job(model=SMALL, batch=4, seq_len=1024, attention="eager"),
    "no-grad-checkpointing": Job(model=SMALL, batch=8, seq_len=1024, attention="sdpa"),
    "optimizer-states": Job(model=SMALL, batch=1, seq_len=16, dtype="fp32", attention="sdpa"),
}


@pytest.mark.parametrize("cause", JOBS)
def test_a_cause_is_confirmed_on_a_card(torch: Any, cause: str) -> None:
    pytest.importorskip("transformers")
    del torch
    backend = JobBackend("cuda")
    spec = TrialSpec(values={}, job=JOBS[cause])
    (planned,) = plan([Suspect(cause=cause, probability=0.9)], Subject(spec=spec))
    assert planned.experiment is not None
    without = treated_spec(Subject(spec=spec), planned.experiment)
    assert without is not None
    before, after = (backend.run(one, lambda _: None).peak_bytes for one in (spec, without))
    assert before is not None
    assert after is not None
    cap = (before + after) // 2

    subject = Subject(spec=replace(spec, cap_bytes=cap))
    tests = plan([Suspect(cause=cause, probability=0.9)], subject)
    trials = Trials(subject, tests, cap_bytes=cap)

    def trial(ask: Ask) -> TrialResult:
        return backend.run(trials.spec_of(ask), lambda _: None)

    (made,) = run(trials.search(), trial).confirmations

    assert made.verdict == CONFIRMED, made.reason
