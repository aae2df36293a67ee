"""The catalogue speaks of causes, changes and fixes that exist."""

from __future__ import annotations

import pytest

from oomdoctor.experiments.catalogue import EXPERIMENTS, experiments_of
from oomdoctor.experiments.job_changes import JOB_CHANGES
from oomdoctor.experiments.posterior import reranked
from oomdoctor.model.job import EvalSpec, GenerationSpec, Job, LoraSpec, ModelSpec, QuantSpec
from oomdoctor.model.trial import CONFIRMED, INCONCLUSIVE, REFUTED, Confirmation
from oomdoctor.record import replace
from oomdoctor.rules.loader import load_rules

JOB = Job(
    model=ModelSpec(name="m", config={}, source="test"),
    batch=4,
    dtype="fp32",
    attention="eager",
    checkpointing="reentrant",
    grad_accum=2,
    ema=True,
    image_size=224,
    reference="separate",
    lora=LoraSpec(dora=True, modules_to_save=("lm_head",)),
    quant=QuantSpec(kind="nf4", prepared=True),
    evaluation=EvalSpec(batch=4, seq_len=8, keeps_outputs=True),
    generation=GenerationSpec(batch=4, prompt=8, new_tokens=8),
)


def test_twenty_five_causes_and_more_have_an_experiment() -> None:
    assert len({cause for one in EXPERIMENTS for cause in one.causes}) >= 25


def test_every_cause_of_an_experiment_is_one_of_the_vocabulary() -> None:
    known = set(load_rules().causes)

    assert [c for one in EXPERIMENTS for c in one.causes if c not in known] == []


def test_every_fix_of_an_experiment_is_one_of_a_rule() -> None:
    known = {fix.id for rule in load_rules().rules for fix in rule.fixes}

    assert [one.fix for one in EXPERIMENTS if one.fix is not None and one.fix not in known] == []


def test_names_are_unique_and_every_experiment_can_be_done_somehow() -> None:
    assert len({one.name for one in EXPERIMENTS}) == len(EXPERIMENTS)
    ways = [
        one.job or one.fix or one.hook or one.environment or one.lifts_cap for one in EXPERIMENTS
    ]
    assert all(ways)


def test_the_change_of_a_job_is_one_that_there_is() -> None:
    assert [one.job for one in EXPERIMENTS if one.job and one.job not in JOB_CHANGES] == []


@pytest.mark.parametrize("name", JOB_CHANGES)
def test_a_change_changes_the_job_and_is_then_in_force(name: str) -> None:
    job = JOB if name != "checkpointed" else replace(JOB, checkpointing=None)
    changed = JOB_CHANGES[name](job)
    assert changed is not None
    assert changed != job

    for _ in range(20):
        again = JOB_CHANGES[name](changed)
        if again is None:
            break
        changed = again

    assert again is None


def test_experiments_of_a_cause_come_in_the_order_of_the_catalogue() -> None:
    names = [one.name for one in experiments_of("batch-or-seq-too-large")]

    assert names == ["half-rows", "checkpoint-activations"]


def test_verdicts_move_the_ranking_and_keep_what_is_left_for_others() -> None:
    before = {"a": 0.5, "b": 0.3}
    verdicts = [
        Confirmation(cause=cause, verdict=verdict, reason="", experiment="")
        for cause, verdict in (("a", REFUTED), ("b", CONFIRMED), ("c", INCONCLUSIVE))
    ]

    after = reranked(before, verdicts)

    assert list(after) == ["b", "a"]
    assert after["b"] == pytest.approx(6 / 6.225)
    assert sum(after.values()) < 1
