"""What lint derives: warm-up, adapter scale and targets, ranks by role, batches that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.facts.derive import derive as derive_facts
from oomdoctor.memory import parts
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook


def derive(stated: FactBook) -> FactBook:
    """Derive all that lint derives."""
    return parts.derive(derive_facts(stated))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"train.warmup_steps": 100}, True),
        ({"train.warmup_ratio": 0.03}, True),
        ({"train.warmup_steps": 0, "train.warmup_ratio": 0.1}, True),
        ({"train.warmup_steps": 0}, False),
        ({}, None),
    ],
)
def test_a_warm_up_is_asked_for_by_steps_or_by_ratio(
    facts: dict[str, float], expected: bool | None
) -> None:
    assert derive(book(facts)).value("train.warmup") is expected


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("q_proj,v_proj", True),
        ("q_proj, k_proj, v_proj, o_proj", True),
        ("self_attn.q_proj,self_attn.v_proj", True),
        ("q_proj,v_proj,gate_proj", False),
        ("all-linear", False),
        (r".*\.(q_proj|v_proj)", None),
        ("all", False),
    ],
)
def test_names_of_the_targets_tell_whether_attention_alone_is_adapted(
    targets: str, expected: bool | None
) -> None:
    made = derive(book({"lora.targets": targets}))

    assert made.value("lora.attention_only") is expected


def test_trl_without_targets_takes_what_peft_takes() -> None:
    facts = {"job.framework": "trl", "lora.on": True, "model.name": "Qwen/Qwen3-4B"}

    made = derive(book(facts, closes=("train-config",)))

    found = made.get("lora.attention_only")
    assert found is not None
    assert (found.value, found.origin) == (True, Origin.ASSUMED)
    assert derive(book(facts)).get("lora.attention_only") is None


def test_scale_is_alpha_by_rank() -> None:
    assert derive(book({"lora.alpha": 128, "lora.rank": 8})).value("lora.scale") == 16


@pytest.mark.parametrize(("vocabulary", "expected"), [(128256, True), (128257, False)])
def test_a_vocabulary_is_aligned_to_64(vocabulary: int, expected: bool) -> None:
    assert derive(book({"model.vocab": vocabulary})).value("model.vocab_aligned") is expected


def test_ranks_that_share_rows_count_once() -> None:
    facts = {
        "dist.world_size": 8,
        "dist.tensor_ranks": 4,
        "train.micro_batch": 2,
        "train.grad_accum": 4,
    }

    made = derive(book(facts))

    assert (made.value("dist.data_ranks"), made.value("train.global_batch")) == (2, 16)
    del facts["dist.tensor_ranks"]
    made = derive(book(facts))
    assert (made.value("dist.data_ranks"), made.value("train.global_batch")) == (8, 64)


def test_ranks_that_do_not_divide_say_nothing() -> None:
    facts = {"dist.world_size": 6, "dist.context_ranks": 4}
    facts |= {"train.micro_batch": 1, "train.grad_accum": 1}

    made = derive(book(facts))

    assert made.get("dist.data_ranks") is None
    assert made.get("train.global_batch") is None


@pytest.mark.parametrize(
    ("saves", "evals", "save_steps", "eval_steps", "expected"),
    [
        ("epoch", "steps", None, None, True),
        ("steps", "steps", 100, 30, True),
        ("steps", "steps", 100, 50, False),
        ("steps", "steps", 0.3, 0.1, False),
        ("steps", "steps", 0.25, 0.1, True),
        ("steps", "steps", 100, 0.1, True),
        ("best", "epoch", None, None, False),
        ("epoch", "epoch", 7, 5, False),
        ("steps", "steps", None, 5, None),
    ],
)
def test_saves_must_fall_on_evaluations(
    saves: str, evals: str, save_steps: float | None, eval_steps: float | None, expected: bool
) -> None:
    facts = {"save.strategy": saves, "eval.strategy": evals, "save.load_best": True}
    numbers = {"save.steps": save_steps, "eval.steps": eval_steps}
    given = {**facts, **{key: value for key, value in numbers.items() if value is not None}}

    assert derive(book(given)).value("save.best_unmatched") is expected


def test_nothing_must_meet_where_the_best_is_not_loaded() -> None:
    facts = {"save.strategy": "epoch", "eval.strategy": "steps", "save.load_best": False}

    assert derive(book(facts)).value("save.best_unmatched") is False


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"deepspeed.micro_batch": 4, "trainer.micro_batch": 1}, True),
        ({"deepspeed.micro_batch": 4, "trainer.micro_batch": 4}, False),
        ({"deepspeed.grad_accum": 8, "trainer.grad_accum": 4}, True),
        ({"deepspeed.micro_batch": 4}, None),
        (
            {
                "deepspeed.train_batch": 64,
                "deepspeed.micro_batch": 2,
                "deepspeed.grad_accum": 4,
                "dist.world_size": 4,
            },
            True,
        ),
        (
            {
                "deepspeed.train_batch": 32,
                "trainer.micro_batch": 2,
                "trainer.grad_accum": 4,
                "dist.world_size": 4,
            },
            False,
        ),
        ({"deepspeed.train_batch": 32, "trainer.micro_batch": 2, "dist.world_size": 4}, None),
    ],
)
def test_batches_of_deepspeed_and_trainer_are_compared(
    facts: dict[str, int], expected: bool | None
) -> None:
    assert derive(book(facts)).value("deepspeed.batch_unmatched") is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"lora.on": True, "job.task": "sft"}, True),
        ({"lora.on": True, "job.task": "dpo"}, False),
        ({"lora.on": False}, False),
        (
            {
                "lora.on": True,
                "job.calls": "call AutoModelForCausalLM.from_pretrained\ncall Trainer",
            },
            True,
        ),
        ({"lora.on": True, "job.calls": "call AutoModelForCausalLM.from_pretrained"}, None),
        ({"lora.on": True}, None),
    ],
)
def test_an_adapter_on_given_texts_is_told_from_preferences(
    facts: dict[str, bool | str], expected: bool | None
) -> None:
    assert derive(book({**facts})).value("lora.supervised") is expected
