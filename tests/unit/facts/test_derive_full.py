"""Training a whole model: the largest such card, printed parameters, the least share."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derive import derive
from oomdoctor.memory import physics
from tests.unit.facts.stated import book

GIB = 1 << 30
COMMAND = {"job.script": "train_mem.py", "job.text": "train_mem.py --bf16 True"}


def test_a_name_alone_bounds_the_memory_of_the_card() -> None:
    assert derive(book({"gpu.name": "A100"})).value("gpu.most") == 80 * GIB


def test_a_stated_capacity_counts_before_the_name() -> None:
    made = derive(book({"gpu.name": "A100", "oom.capacity": 39 * GIB}))
    assert made.value("gpu.most") == 39 * GIB


@pytest.mark.parametrize(
    ("text", "expected"),
    [("train_mem.py --bf16 True", True), ("train_mem.py --lora_enable True", None)],
)
def test_a_training_script_without_adapter_trains_everything(
    text: str, expected: bool | None
) -> None:
    made = derive(book({"job.script": "train_mem.py", "job.text": text}))
    assert made.value("train.full_finetune") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ilab model train --gpus 1 --model-path /m/llama-7b", True),
        ("$ mytool train -c a.yaml", True),
        ("ilab model train --gpus 1 --quantize-dtype nf4", None),
        ("we train with one card", None),
    ],
)
def test_a_command_whose_subcommand_trains_is_a_training_script(
    text: str, expected: bool | None
) -> None:
    assert derive(book({"job.text": text})).value("train.full_finetune") is expected


@pytest.mark.parametrize(("ranks", "known"), [(1, True), (8, False)])
def test_sharding_over_one_rank_saves_nothing(ranks: int, *, known: bool) -> None:
    facts = {**COMMAND, "dist.kind": "fsdp1", "dist.world_size": ranks, "gpu.name": "A100"}
    made = derive(book({**facts, "model.params": 13_000_000_000}))
    assert (made.value("states.least_full_share") is not None) is known


@pytest.mark.parametrize(
    ("requested", "expected"), [(4 * 2 * 2_826_830_336, True), (4 * 2 * 2_700_000_000, None)]
)
def test_the_whole_model_in_one_flat_tensor_is_recognised(
    requested: int, expected: bool | None
) -> None:
    facts = {"dist.kind": "fsdp1", "model.params_printed": 2_826_830_336, "oom.gpu_index": 3}
    made = physics.derive(derive(book({**facts, "oom.requested": requested})))
    assert made.value("fingerprint.flat_model") is expected
