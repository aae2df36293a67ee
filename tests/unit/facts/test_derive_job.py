"""What follows about run and job: early or late, training or not, sharded or not."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derive import derive
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book


@pytest.mark.parametrize(
    ("step", "first", "late"),
    [(0, True, False), (1, None, False), (2, False, False), (21, False, True)],
)
def test_the_step_tells_first_from_late(step: int, first: bool | None, late: bool) -> None:
    made = derive(book({"run.step": step}))

    assert made.value("run.first_step") is first
    assert made.value("run.late_step") is late


def test_loading_is_before_the_first_step() -> None:
    made = derive(book({"run.phase": "load"}))

    assert made.value("run.first_step") is True
    assert made.value("run.late_step") is False


def test_a_forward_pass_alone_says_nothing_about_the_step() -> None:
    assert derive(book({"run.phase": "forward"})).get("run.first_step") is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.task": "serve"}, True),
        ({"job.task": "sft"}, False),
        ({"job.framework": "vllm"}, True),
        ({"run.phase": "backward"}, False),
        ({"run.phase": "generate"}, None),
        ({"job.task": "generate", "run.phase": "backward"}, False),
        ({"train.inference": True, "job.task": "sft"}, True),
    ],
)
def test_task_framework_and_phase_tell_inference_from_training(
    facts: dict[str, bool | str], expected: bool | None
) -> None:
    assert derive(book(facts)).value("run.inference_only") is expected


def test_tokens_are_rows_times_length() -> None:
    made = derive(book({"train.micro_batch": 4, "train.seq_len": 2048, "job.task": "sft"}))

    assert made.value("train.tokens") == 8192


def test_a_preference_pair_is_two_rows() -> None:
    made = derive(book({"train.micro_batch": 4, "train.seq_len": 2048, "job.task": "dpo"}))

    assert made.value("train.tokens") == 16384


@pytest.mark.parametrize(
    ("kind", "ranks", "params", "optimizer"),
    [
        ("fsdp2", 8, True, True),
        ("zero3", 8, True, True),
        ("zero2", 8, False, True),
        ("ddp", 8, False, False),
        ("zero3", 1, False, False),
        ("zero2", None, False, None),
        ("zero3", None, None, None),
        ("tensor", None, True, True),
    ],
)
def test_sharding_needs_a_sharding_kind_and_more_than_one_rank(
    kind: str, ranks: int | None, params: bool | None, optimizer: bool | None
) -> None:
    stated: dict[str, int | str] = {"dist.kind": kind}
    if ranks is not None:
        stated["dist.world_size"] = ranks

    made = derive(book(stated))

    assert made.value("dist.shards_params") is params
    assert made.value("dist.shards_optimizer") is optimizer


def test_a_single_visible_card_is_a_single_rank() -> None:
    made = derive(book({"gpu.count": 1, "dist.kind": "zero3"}))

    assert made.value("dist.world_size") == 1
    assert made.value("dist.shards_params") is False


def test_cards_under_a_launcher_are_only_assumed_to_be_ranks() -> None:
    made = derive(book({"gpu.count": 4, "job.launcher": "torchrun"})).facts["dist.world_size"]

    assert (made.value, made.origin) == (4, Origin.ASSUMED)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"lora.on": False, "job.task": "sft"}, True),
        ({"lora.on": False}, None),
        ({"job.task": "sft"}, None),
        ({"lora.on": True, "job.task": "sft"}, False),
        ({"quant.kind": "bnb4", "job.task": "sft", "lora.on": False}, False),
        ({"job.task": "serve"}, False),
        ({"train.trainable_share": 1.0}, True),
        ({"train.trainable_params": 4194304, "model.params": 6738415616}, False),
    ],
)
def test_full_finetuning_needs_positive_evidence(
    facts: dict[str, bool | float | str], expected: bool | None
) -> None:
    assert derive(book(facts)).value("train.full_finetune") is expected


def test_the_global_batch_counts_accumulation_and_ranks() -> None:
    made = derive(
        book(
            {
                "train.micro_batch": 2,
                "train.grad_accum": 8,
                "dist.world_size": 4,
                "dist.kind": "ddp",
            }
        )
    )

    assert made.value("train.global_batch") == 64


def test_accumulation_of_nanogpt_is_that_of_all_ranks() -> None:
    made = derive(
        book(
            {
                "train.micro_batch": 12,
                "train.grad_accum": 40,
                "dist.world_size": 8,
                "job.framework": "nanogpt",
            }
        )
    )

    assert made.value("train.global_batch") == 480


LOADED: dict[str, bool | float | str] = {
    "code.loads_only": True,
    "job.text": "model = load().cuda()",
}


def test_a_script_that_only_loads_a_model_is_taken_for_one_that_trains_nothing() -> None:
    made = derive(book(LOADED)).facts["run.inference_only"]

    assert made.value is True
    assert made.origin is Origin.ASSUMED


@pytest.mark.parametrize(
    "more",
    [
        {"job.text": "full fine-tuning with deepspeed\nmodel = load()"},
        {"job.text": "python train.py"},
        {"train.micro_batch": 4},
        {"lora.on": True},
        {"run.phase": "forward"},
        {"code.loads_only": False},
    ],
)
def test_a_word_of_training_leaves_it_open(more: dict[str, bool | float | str]) -> None:
    assert derive(book({**LOADED, **more})).value("run.inference_only") is None


def test_a_pretrained_model_is_no_word_of_training() -> None:
    text = "model = AutoModel.from_pretrained('org/trained-model')"
    assert derive(book({**LOADED, "job.text": text})).value("run.inference_only") is True
