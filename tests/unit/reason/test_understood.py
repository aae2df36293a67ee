"""The job as understood, as rows that a page prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.given import parse_given
from oomdoctor.pipeline import assemble, gather
from oomdoctor.reason.understood import understood

if TYPE_CHECKING:
    from oomdoctor.model.lint import UnderstoodRow

QLORA = """
model_name_or_path: meta-llama/Llama-2-7b-hf
stage: sft
finetuning_type: lora
lora_rank: 8
lora_target: all
quantization_bit: 4
cutoff_len: 1024
dataset: mine
template: llama2
output_dir: out
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
"""


def rows(config: str, *facts: str) -> dict[str, UnderstoodRow]:
    book = assemble(gather((), config=config), parse_given(facts))
    return {row.name: row for row in understood(book)}


def test_the_job_is_told_with_its_arithmetic() -> None:
    said = rows(QLORA, "dist.world_size=2", "env.transformers=4.57.1")

    assert said["model"].text == "meta-llama/Llama-2-7b-hf: 6,738,415,616 parameters"
    assert said["trainable"].text == "19,988,480 parameters (0.297 %)"
    assert said["effective batch"].text == "32 rows = 2 rows per device x 8 accumulation x 2 ranks"
    assert said["tokens per step"].text == "32,768 at most = 32 rows x 1,024 tokens"


def test_ranks_that_nobody_counted_are_said_to_be_missing() -> None:
    said = rows(QLORA)

    assert said["effective batch"].text.endswith("x ranks (not stated)")
    assert said["tokens per step"].text == "16,384 at most per rank = 16 rows x 1,024 tokens"


def test_every_part_of_memory_has_its_formula() -> None:
    said = rows(QLORA, "env.transformers=4.57.1", "gpu.name=RTX 4090")
    memory = [row for row in said.values() if row.group == "memory"]

    assert [row.name for row in memory] == [
        "weights",
        "adapters",
        "optimizer",
        "gradients",
        "activations and logits",
        "context and fragmentation",
        "peak on one card",
    ]
    assert all((row.source or "").startswith("formula: ") for row in memory)
    assert all(row.bytes is not None for row in memory)
    assert said["peak on one card"].text.endswith("of 23.52 GiB (RTX 4090)")
    assert said["adapters"].bytes == 4 * 19_988_480


def test_what_is_missing_is_named_and_not_guessed() -> None:
    said = rows(
        "base_model: my/own-model\nadapter: lora\nlora_r: 8\nmicro_batch_size: 1\n"
        "learning_rate: 1e-4\nbf16: true\ndatasets:\n  - path: a\n    type: alpaca\n"
    )

    step = said["activations and logits"]
    assert step.text == "unknown: needs the model's config.json"
    assert step.bytes is None
    assert said["weights"].text == "unknown: needs the model's config.json"
    assert said["model"].text == "my/own-model: its size is not known"


def test_a_mixture_of_experts_is_told_to_have_no_formula() -> None:
    said = rows(QLORA.replace("meta-llama/Llama-2-7b-hf", "mistralai/Mixtral-8x7B-v0.1"))

    assert said["activations and logits"].text == (
        "756.25 MiB logits; activations unknown: no formula for mixtures of experts"
    )


def test_what_a_step_adds_is_told_in_one_row_with_its_two_parts() -> None:
    row = rows(QLORA, "env.transformers=4.57.1")["activations and logits"]

    assert row.text == "1.63 GiB = 909.60 MiB activations + 756.25 MiB logits"


def test_half_of_a_step_is_told_beside_what_the_other_half_needs() -> None:
    unfused = QLORA.replace("bf16: true", "bf16: true\nkernel_config: {name: auto}")
    row = rows(unfused, "env.transformers=4.57.1")["activations and logits"]

    assert row.text == "909.60 MiB activations; logits unknown: needs loss.impl"


def test_pairs_of_preference_training_count_twice() -> None:
    said = rows(QLORA.replace("stage: sft", "stage: dpo"), "dist.world_size=1")

    assert said["tokens per step"].text == (
        "32,768 at most = 16 rows x 1,024 tokens x 2 (chosen and rejected)"
    )


def test_nothing_is_told_without_a_job() -> None:
    assert rows("") == {}
