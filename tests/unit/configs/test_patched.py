"""Patches read as the facts of their settings."""

from __future__ import annotations

from oomdoctor.configs.patched import facts_of_settings


def values(dialect: str, settings: dict[str, object]) -> dict[str, object]:
    return {fact.key: fact.value for fact in facts_of_settings(dialect, settings)}


def test_settings_mean_what_a_config_means_by_them() -> None:
    found = values("hf_trainer", {"per_device_train_batch_size": 2, "optim": "adamw_8bit"})
    assert found["train.micro_batch"] == 2
    assert (found["optimizer.name"], found["optimizer.state_bits"]) == ("adamw_8bit", 8)


def test_each_dialect_has_its_own_spelling() -> None:
    assert values("axolotl", {"micro_batch_size": 3})["train.micro_batch"] == 3
    assert values("deepspeed", {"zero_optimization.stage": 3})["dist.kind"] == "zero3"


def test_a_key_that_is_taken_out_states_nothing() -> None:
    assert values("hf_trainer", {"optim": "!remove", "bf16": "!rename fp16"}) == {}


def test_what_nobody_knows_states_nothing() -> None:
    assert values("hf_trainer", {"no_such_key": 1, "optim": ["a"]}) == {}
