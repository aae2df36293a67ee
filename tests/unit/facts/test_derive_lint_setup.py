"""Reentrant checkpoints by framework and version, unsharded ranks, unmatched LoRA targets."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derivation import apply
from oomdoctor.facts.derive_lint_setup import STEPS
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book

ON: dict[str, bool | int | float | str] = {"train.grad_checkpointing": True}
HF = {**ON, "job.framework": "transformers"}
TRL = {**ON, "job.framework": "trl", "lora.on": True}


def value(facts: dict[str, bool | int | float | str], key: str, *closed: str) -> object:
    return apply(book(facts).add((), closes=closed), STEPS).value(key)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({**HF, "env.transformers": "4.57.1"}, True),
        ({**HF, "env.transformers": "5.0.0"}, False),
        ({**HF, "env.transformers": "4.57.1", "train.checkpoint_reentrant": False}, False),
        ({**HF, "train.checkpoint_reentrant": True}, True),
        ({**HF}, None),
        ({**HF, "train.grad_checkpointing": False, "env.transformers": "4.57.1"}, None),
        ({**TRL, "env.trl": "1.16.0", "env.transformers": "4.57.1"}, False),
        ({**TRL, "env.trl": "0.24.0", "env.transformers": "4.57.1"}, True),
        ({**TRL, "env.trl": "1.16.0", "dist.kind": "zero3"}, True),
        ({**TRL, "env.trl": "1.16.0", "dist.kind": "zero3", "lora.on": False}, False),
        ({**ON, "job.framework": "axolotl"}, None),
    ],
)
def test_checkpoints_are_reentrant_by_framework_and_version(
    facts: dict[str, bool | int | float | str], expected: bool | None
) -> None:
    assert value(facts, "train.reentrant") is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("bf16 = true", True),
        ("deepspeed = ds.json", None),
        ("deepspeed = null", True),
        ("fsdp_config.offload_params = false", True),
        ("trainingarguments.fsdp = full_shard", None),
    ],
)
def test_a_whole_config_without_sharding_is_taken_as_unsharded(
    settings: str, expected: bool | None
) -> None:
    facts: dict[str, bool | int | float | str] = {
        "job.framework": "transformers",
        "job.settings": settings,
    }

    assert value(facts, "dist.unsharded", "train-config") is expected
    assert value(facts, "dist.unsharded") is None


@pytest.mark.parametrize(
    ("kind", "expected"), [("ddp", True), ("none", True), ("zero2", False), ("fsdp1", False)]
)
def test_the_kind_of_distribution_tells_whether_it_shards(kind: str, expected: bool) -> None:
    assert value({"dist.kind": kind}, "dist.unsharded") is expected


def test_several_ranks_of_a_launcher_without_sharding_are_plain_ddp_by_assumption() -> None:
    facts: dict[str, bool | int | float | str] = {
        "job.framework": "transformers",
        "job.launcher": "torchrun",
        "dist.world_size": 2,
    }
    made = apply(book(facts).add((), closes=["train-config"]), STEPS).get("dist.plain_ddp")

    assert made is not None
    assert (made.value, made.origin) == (True, Origin.ASSUMED)
    assert value({**facts, "dist.world_size": 1}, "dist.plain_ddp", "train-config") is None
    assert value({**facts, "dist.kind": "fsdp2"}, "dist.plain_ddp", "train-config") is False


def test_targets_are_compared_with_the_modules_of_the_named_model() -> None:
    facts: dict[str, bool | int | float | str] = {
        "job.framework": "axolotl",
        "lora.on": True,
        "lora.targets": "q_proj,o_proj",
        "model.name": "microsoft/Phi-3-mini-4k-instruct",
    }

    assert value(facts, "lora.unmatched") == "q_proj"
    assert value({**facts, "job.framework": "torchtune"}, "lora.unmatched") is None
    assert value({**facts, "model.name": "my/model"}, "lora.unmatched") is None
