"""Keys about ranks, ZeRO, references and compilation in each dialect."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

ZERO = '{{"zero_optimization": {{"stage": 3, {rest}}}}}'
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: {kind}\n"
    "num_machines: 2\nnum_processes: 16\n{rest}"
)


def facts(text: str, name: str = "job") -> dict[str, object]:
    return {fact.key: fact.value for one in read_config(text, name=name) for fact in one.facts}


def closes(text: str) -> tuple[str, ...]:
    (reading,) = read_config(text, name="job")
    return reading.closes


@pytest.mark.parametrize(
    ("rest", "key", "value"),
    [
        ('"reduce_bucket_size": 5e8', "zero.reduce_bucket", 500_000_000),
        ('"reduce_bucket_size": "auto"', "zero.reduce_auto", True),
        ('"overlap_comm": false', "zero.overlap", False),
        ('"stage3_max_live_parameters": 1e9', "zero.max_live", 10**9),
        ('"stage3_gather_16bit_weights_on_model_save": true', "zero.gathers_on_save", True),
        ('"stage3_gather_fp16_weights_on_model_save": true', "zero.gathers_on_save", True),
    ],
)
def test_a_deepspeed_file_tells_its_buckets_and_limits(rest: str, key: str, value: object) -> None:
    assert facts(ZERO.format(rest=rest))[key] == value


def test_a_bucket_that_is_left_to_the_trainer_has_no_number() -> None:
    assert "zero.reduce_bucket" not in facts(ZERO.format(rest='"reduce_bucket_size": "auto"'))


@pytest.mark.parametrize(
    ("kind", "rest", "expected"),
    [
        ("DEEPSPEED", "deepspeed_config: {zero_stage: 2}\n", ("zero-config",)),
        ("DEEPSPEED", "deepspeed_config: {zero_stage: 2, deepspeed_config_file: a.json}\n", ()),
        ("DEEPSPEED", "deepspeed_config: {deepspeed_config_file: a.json}\n", ()),
        ("FSDP", "fsdp_config: {fsdp_version: 2}\n", ("fsdp-config",)),
        ("MULTI_GPU", "mixed_precision: bf16\n", ()),
    ],
)
def test_accelerate_is_complete_about_zero_unless_another_file_is_named(
    kind: str, rest: str, expected: tuple[str, ...]
) -> None:
    assert closes(ACCELERATE.format(kind=kind, rest=rest)) == expected


def test_accelerate_tells_machines_saving_and_the_mode_of_compilation() -> None:
    rest = "deepspeed_config: {zero_stage: 3, zero3_save_16bit_model: true}\n"
    rest += "dynamo_config: {dynamo_backend: INDUCTOR, dynamo_mode: reduce-overhead}\n"

    found = facts(ACCELERATE.format(kind="DEEPSPEED", rest=rest))

    assert found["dist.nodes"] == 2
    assert found["zero.gathers_on_save"] is True
    assert found["compile.mode"] == "reduce-overhead"


def test_lightning_tells_its_precision_and_machines() -> None:
    text = "trainer: {precision: bf16-mixed, num_nodes: 4, devices: 8}\nmodel: {class_path: a.B}\n"

    found = facts(text)

    assert (found["lightning.precision"], found["train.amp"]) == ("bf16-mixed", "bf16")
    assert found["dist.nodes"] == 4


def test_a_script_tells_beta_engine_and_mode() -> None:
    text = (
        "from trl import GRPOConfig\n"
        "args = GRPOConfig(beta=0.04, use_vllm=True, steps_per_generation=4)\n"
        "model = torch.compile(model, mode='max-autotune')\n"
    )

    found = facts(text, "train.py")

    assert (found["rl.beta"], found["rl.use_vllm"]) == (0.04, True)
    assert (found["rl.steps_per_generation"], found["compile.mode"]) == (4, "max-autotune")


def test_the_betas_of_an_optimizer_are_no_beta_of_a_method() -> None:
    text = "from transformers import TrainingArguments\nargs = TrainingArguments(adam_beta1=0.9)\n"

    assert "rl.beta" not in facts(text, "train.py")


@pytest.mark.parametrize(
    ("key", "task"),
    [
        ("packing: false", "sft"),
        ("packing: true", "sft"),
        ("precompute_ref_log_probs: true", "dpo"),
    ],
)
def test_a_key_that_one_trainer_alone_has_tells_the_task(key: str, task: str) -> None:
    text = (
        "model_name_or_path: gpt2\noutput_dir: out\nper_device_train_batch_size: 1\n"
        f"learning_rate: 0.1\nmax_length: 512\n{key}\n"
    )

    assert facts(text)["job.task"] == task
