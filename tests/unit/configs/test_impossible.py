"""Numbers of a config that no job can have are told."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

AXOLOTL = "base_model: gpt2\nlearning_rate: 1e-4\nsequence_len: 512\n"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("micro_batch_size: 0", "train.micro_batch"),
        ("micro_batch_size: -2", "train.micro_batch"),
        ("gradient_accumulation_steps: 0", "train.grad_accum"),
    ],
)
def test_a_number_that_no_job_has_is_told_with_its_place(line: str, key: str) -> None:
    (reading,) = read_config(AXOLOTL + line + "\n", name="train.yaml")

    written = line.replace(":", " =")
    assert reading.notes == (
        f"line 4: {written} is not read: {key} is a whole number of at least 1",
    )


@pytest.mark.parametrize(
    "line", ["micro_batch_size: 2", "max_steps: -1", "micro_batch_size: auto", "lora_r:"]
)
def test_what_a_job_can_have_is_not(line: str) -> None:
    (reading,) = read_config(AXOLOTL + line + "\n", name="train.yaml")

    assert reading.notes == ()
