"""Owners by formula are groups of modules, and add up to what they are groups of."""

from __future__ import annotations

import pytest

from oomdoctor.estimating.verdicts import failed_words
from oomdoctor.memory.allocator_oom import Shortage
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.memory.formula_owners import OWNERS, group_of
from oomdoctor.memory.stream import Allocation
from oomdoctor.memory.stream_balance import owner_path
from oomdoctor.memory.stream_replay import Failed
from oomdoctor.model.job import Job, LoraSpec, ModelSpec, QuantSpec, ShardingSpec
from oomdoctor.record import replace

LLAMA = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
JOB = Job(model=ModelSpec(name="llama", config=LLAMA, source="made up"), seq_len=256)


def weights(job: Job) -> dict[str, int]:
    owners = peak_by_formula(job).owners
    return {one.module: one.bytes for one in owners if one.category == "weights"}


def test_weights_are_owned_by_groups_of_modules() -> None:
    found = weights(JOB)

    assert found["layers.*.mlp"] == pytest.approx(8 * 3 * 1024 * 4096 * 2, rel=0.001)
    assert found["layers.*.self_attn"] == pytest.approx(8 * 4 * 1024 * 1024 * 2, rel=0.001)
    assert found["embed_tokens"] == found["lm_head"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sharding": ShardingSpec(kind="fsdp2", ranks=4)},
        {"quant": QuantSpec(kind="nf4"), "method": "qlora", "lora": LoraSpec()},
    ],
)
def test_owners_of_weights_add_up_to_the_weights(changes: dict[str, object]) -> None:
    made = peak_by_formula(replace(JOB, **changes))
    whole = next(one.bytes for one in made.categories if one.name == "weights")

    found = [one.bytes for one in made.owners if one.category == "weights"]

    assert sum(found) == pytest.approx(whole, rel=0.01)
    assert len(made.owners) <= OWNERS


def test_weights_are_made_while_the_model_loads() -> None:
    owners = peak_by_formula(JOB).owners

    assert {one.phase for one in owners if one.category == "weights"} == {"load"}


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("layers.3.mlp.experts.gate_up_proj", "layers.*.mlp"),
        ("encoder.0.norm1", "encoder.*.norms"),
        ("lm_head", "lm_head"),
        ("score.bias", "score"),
    ],
)
def test_a_weight_is_of_a_group(name: str, group: str) -> None:
    assert group_of(name) == group


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("base_model.model.model.layers.3.mlp.up_proj.base_layer", "model.layers.*.mlp.up_proj"),
        ("base_model.model.lm_head", "lm_head"),
        ("base_model.model", "base_model.model"),
        ("model.layers.3.mlp", "model.layers.*.mlp"),
        ("", ""),
    ],
)
def test_a_path_is_that_of_the_users_model(path: str, own: str) -> None:
    assert owner_path(path) == own


def test_a_request_that_fails_is_named_as_the_users_model_has_it() -> None:
    wanted = Allocation(
        size=512,
        operator="aten.mul.out",
        module="base_model.model.model.layers.3.self_attn.q_proj",
        phase="step 1",
        part="forward",
    )
    short = Shortage(512, 512, 512, 1024, 0, 1024, 1024)

    said = failed_words(Failed(event=0, number=0, allocation=wanted, shortage=short))

    assert said.startswith(
        "forward of step 1: aten.mul.out in model.layers.3.self_attn.q_proj asks"
    )
