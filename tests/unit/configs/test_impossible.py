"""Numbers of a config that no job can have are told."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config
from oomdoctor.facts.bounds import BOUNDS

HUGE = "9" * 5000
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


@pytest.mark.parametrize(
    ("line", "kind", "told"),
    [
        ("sequence_len: -2048", "tokens", "sequence_len = -2048"),
        ("lora_r: -8", "adapter", "lora_r = -8"),
        ("world_size: 0", "ranks", "world_size = 0"),
        ("micro_batch_size: 0", "rows", "micro_batch_size = 0"),
        (f"micro_batch_size: {HUGE}", "rows", f"micro_batch_size = {'9' * 40}..."),
        ("gpu_memory_utilization: 7", "share", "gpu_memory_utilization = 7"),
        ("learning_rate: -1", "rate", "learning_rate = -1"),
        ("learning_rate: nan", "rate", "learning_rate = nan"),
        ("learning_rate: .inf", "rate", "learning_rate = .inf"),
    ],
)
def test_a_mistake_is_a_fact_of_its_kind_and_no_value(line: str, kind: str, told: str) -> None:
    (reading,) = read_config(f"base_model: gpt2\n{line}\n", name="train.yaml")

    found = {fact.key: fact.value for fact in reading.facts}

    assert told == found[f"impossible.{kind}"]
    assert not found.keys() & BOUNDS.keys()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", f'{{"base_model": "gpt2", "micro_batch_size": {HUGE}}}'),
        ("a.toml", f'base_model = "gpt2"\nmicro_batch_size = {HUGE}\n'),
        ("a.sh", f"torchrun train.py --base_model gpt2 --micro_batch_size {HUGE}\n"),
        ("a.py", 'TrainingArguments(output_dir="x", micro_batch_size=-3)\n'),
        ("a.py", f'TrainingArguments(output_dir="x", micro_batch_size=0x{"f" * 5000})\n'),
        ("a.yaml", f"base_model: gpt2\nmicro_batch_size: 0x{'f' * 5000}\n"),
    ],
)
def test_a_mistake_is_found_in_every_syntax(name: str, text: str) -> None:
    (reading,) = read_config(text, name=name)

    assert "impossible.rows" in {fact.key for fact in reading.facts}


def test_a_rate_that_a_script_makes_no_number_is_a_mistake() -> None:
    text = 'args = TrainingArguments(output_dir="x", learning_rate=float("nan"))\n'
    (reading,) = read_config(text, name="a.py")

    assert "impossible.rate" in {fact.key for fact in reading.facts}


@pytest.mark.parametrize(
    "line",
    [
        *("max_length: -1", "max_length: 0", "batch: -1", "batch: 0.7", "lora_r: 0"),
        *(
            "learning_rate: 0",
            "world_size: -1",
            "model_max_length: 1000000000000000019884624838656",
        ),
    ],
)
def test_what_asks_a_program_to_choose_is_no_mistake(line: str) -> None:
    (reading,) = read_config(f"base_model: gpt2\n{line}\n", name="train.yaml")

    assert not [fact.key for fact in reading.facts if fact.key.startswith("impossible.")]


def test_lengths_below_zero_add_up_to_none() -> None:
    text = "base_model: gpt2\nmax_prompt_length: -5\nmax_completion_length: 600\n"
    (reading,) = read_config(text, name="train.yaml")

    assert "train.seq_len" not in {fact.key for fact in reading.facts}
