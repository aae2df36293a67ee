"""Names that lint needs: who names the batch, FSDP's own checkpointing, ranks by role."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

AXOLOTL = "base_model: my/model\ndatasets: [{path: a, type: alpaca}]\n"
HF = "output_dir: out\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n"
ACCELERATE = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"


def values(text: str, name: str = "train.yaml") -> dict[str, object]:
    return {fact.key: fact.value for part in read_config(text, name=name) for fact in part.facts}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HF, {"trainer.micro_batch": 2, "trainer.grad_accum": 8, "train.micro_batch": 2}),
        (f"{HF}fsdp: full_shard auto_wrap\n", {"dist.fsdp_asked": True, "dist.kind": "fsdp1"}),
        (f"{HF}deepspeed: ds_z2.json\n", {"dist.deepspeed_asked": True, "dist.kind": "zero2"}),
        (f"{HF}auto_find_batch_size: true\n", {"train.auto_batch": True}),
        (f"{HF}load_best_model_at_end: true\n", {"save.load_best": True}),
        (
            f"{HF}fsdp: true\nfsdp_config:\n  activation_checkpointing: true\n",
            {"dist.fsdp_checkpointing": True, "train.grad_checkpointing": True},
        ),
        (
            f"{ACCELERATE}fsdp_config:\n  fsdp_activation_checkpointing: true\n",
            {"dist.fsdp_checkpointing": True, "train.grad_checkpointing": True},
        ),
        (
            f"{ACCELERATE}parallelism_config:\n  parallelism_config_tp_size: 4\n",
            {"dist.tensor_ranks": 4},
        ),
        (
            f"{AXOLOTL}micro_batch_size: 2\ncontext_parallel_size: 2\ntensor_parallel_size: 4\n",
            {"trainer.micro_batch": 2, "dist.context_ranks": 2, "dist.tensor_ranks": 4},
        ),
        (f"{AXOLOTL}sequence_parallel_degree: 8\n", {"dist.context_ranks": 8}),
    ],
)
def test_a_setting_says_who_asks_for_what(text: str, expected: dict[str, object]) -> None:
    made = values(text)

    assert expected == {key: made.get(key) for key in expected}


def test_deepspeed_names_its_own_batch() -> None:
    text = (
        '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,'
        ' "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}}'
    )

    made = values(text, "ds.json")

    assert (made["deepspeed.train_batch"], made["deepspeed.micro_batch"]) == (64, 2)
    assert "deepspeed.grad_accum" not in made
    assert "trainer.micro_batch" not in made


@pytest.mark.parametrize("value", ["", "null", "false", "[]", '""'])
def test_fsdp_that_is_switched_off_is_not_asked_for(value: str) -> None:
    assert "dist.fsdp_asked" not in values(f"{HF}fsdp: {value}\n")
