"""The formula engine: the highest point of a step over its time, without torch."""

from __future__ import annotations

import pytest

from oomdoctor.facts import model_configs
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.model.job import (
    EvalSpec,
    GenerationSpec,
    Job,
    LoraSpec,
    ModelSpec,
    OptimizerSpec,
    QuantSpec,
    ShardingSpec,
)
from oomdoctor.record import replace

MIB = 1 << 20
GIB = 1 << 30
LLAMA_2 = "meta-llama/Llama-2-7b-hf"


def model(name: str) -> ModelSpec:
    """Return a model of the table."""
    known = model_configs.lookup(name)
    assert known is not None
    return ModelSpec(name=name, config=known.config, source="table", params=known.params)


def parts(job: Job) -> dict[str, int]:
    """Return what the peak is made of."""
    return {part.name: part.bytes for part in peak_by_formula(job).categories}


LORA = Job(
    model=model(LLAMA_2),
    method="lora",
    lora=LoraSpec(rank=8, targets=("q_proj", "v_proj"), dropout=0.05),
)
FULL = Job(model=model("Qwen/Qwen2.5-0.5B"), batch=2, seq_len=1024)


def test_full_training_of_half_a_billion_weights_as_traced() -> None:
    # traced with fake tensors: 9349.5 MiB, at the gradient of the log-probabilities
    found = peak_by_formula(replace(FULL, padded=True))

    assert found.peak_bytes / MIB == pytest.approx(9349.5, rel=0.001)
    assert found.peak_phase == "step 2"


def test_the_same_with_checkpointing_as_traced() -> None:
    found = peak_by_formula(replace(FULL, checkpointing="non-reentrant"))

    assert found.peak_bytes / MIB == pytest.approx(6504.5, rel=0.001)


def test_a_foreach_optimizer_needs_a_copy_of_all_weights_as_traced() -> None:
    job = Job(model=model(LLAMA_2), checkpointing="non-reentrant")
    found = peak_by_formula(job)

    assert found.peak_bytes / MIB == pytest.approx(64278.8, rel=0.001)
    fused = peak_by_formula(replace(job, optimizer=OptimizerSpec(implementation="fused")))
    assert fused.peak_bytes < found.peak_bytes


def test_an_adapter_with_a_mask_as_traced() -> None:
    assert peak_by_formula(replace(LORA, padded=True)).peak_bytes / MIB == pytest.approx(
        24704.3, rel=0.001
    )


def test_the_loss_over_full_logits_holds_twelve_bytes_a_value() -> None:
    job = replace(FULL, checkpointing="non-reentrant")
    logits = parts(job)["logits and loss"]

    assert logits / (2 * 1024 * 151936) == pytest.approx(12, rel=0.01)


def test_a_fused_loss_never_holds_all_logits() -> None:
    job = replace(FULL, checkpointing="non-reentrant")
    fused = peak_by_formula(replace(job, loss="fused")).peak_bytes

    assert peak_by_formula(job).peak_bytes - fused > 1.5 * GIB


def test_four_bit_weights_take_about_half_a_byte() -> None:
    job = replace(LORA, method="qlora", quant=QuantSpec(kind="nf4", double=True))
    weights = parts(job)["weights"]

    linears = 6_738_415_616 - 2 * 32000 * 4096
    assert weights == pytest.approx(0.516 * linears + 2 * 2 * 32000 * 4096, rel=0.01)


def test_eager_attention_keeps_six_bytes_for_every_pair() -> None:
    eager = parts(replace(FULL, attention="eager"))["activation"]
    tiled = parts(FULL)["activation"]

    pairs = 2 * 14 * 1024 * 1024 * 24
    assert (eager - tiled) / pairs == pytest.approx(6, rel=0.06)


def test_grouped_heads_in_fp32_have_no_kernel_that_spares_the_scores_as_traced() -> None:
    # traced with fake tensors on an A100: 17308.4 MiB, and 14805.8 MiB with a mask
    plain, masked = (
        peak_by_formula(replace(FULL, dtype="fp32", padded=padded)) for padded in (False, True)
    )

    assert plain.peak_bytes / MIB == pytest.approx(17308.4, rel=0.005)
    assert masked.peak_bytes / MIB == pytest.approx(14805.8, rel=0.005)


def test_autocast_keeps_a_copy_of_fp32_weights() -> None:
    plain = replace(FULL, dtype="fp32", batch=1, seq_len=64)
    mixed = replace(plain, amp="bf16")

    grown = parts(mixed).get("activation", 0) - parts(plain).get("activation", 0)
    assert peak_by_formula(mixed).peak_bytes >= peak_by_formula(plain).peak_bytes
    assert grown >= 0


def test_states_of_eight_bit_adamw_are_a_quarter_but_for_the_embedding() -> None:
    one = parts(replace(FULL, dtype="fp32"))["optimizer"]
    eight = parts(replace(FULL, dtype="fp32", optimizer=OptimizerSpec(name="adamw-8bit")))

    assert eight["optimizer"] < 0.5 * one  # the embedding keeps fp32 states
    paged = replace(FULL, optimizer=OptimizerSpec(name="adamw-8bit", paged=True))
    assert parts(paged).get("optimizer", 0) == 0


def test_sharding_splits_weights_gradients_and_states() -> None:
    job = Job(model=model(LLAMA_2), checkpointing="non-reentrant", seq_len=512)
    alone = parts(job)
    shared = parts(replace(job, sharding=ShardingSpec(kind="fsdp2", ranks=8)))

    assert shared["weights"] == pytest.approx(alone["weights"] / 8, rel=0.01)
    assert shared["optimizer"] < alone["optimizer"] / 7


def test_outputs_that_are_kept_grow_with_the_batches() -> None:
    spec = EvalSpec(batch=2, seq_len=512, batches=8, keeps_outputs=True)
    kept = peak_by_formula(replace(FULL, evaluation=spec))
    lost = peak_by_formula(replace(FULL, evaluation=replace(spec, keeps_outputs=False)))

    one = {phase.name: phase.allocated_bytes for phase in kept.phases}
    two = {phase.name: phase.allocated_bytes for phase in lost.phases}
    assert one["evaluation"] - two["evaluation"] > 4 * 2 * 512 * 151936 * 2


def test_a_cache_takes_two_values_for_each_token_layer_and_head() -> None:
    spec = GenerationSpec(batch=4, prompt=1024, new_tokens=1024)
    job = Job(model=model(LLAMA_2), task="generation", generation=spec, optimizer=None)
    found = peak_by_formula(job)
    made = {part.name: part.bytes for part in found.categories}

    expected = 2 * 32 * 4 * 2048 * 4096 * 2
    assert made["kv cache"] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    "name",
    [
        "google-bert/bert-base-uncased",
        "google-t5/t5-base",
        "openai-community/gpt2",
        "tiiuae/falcon-7b",
        "Qwen/Qwen3-30B-A3B",
        "deepseek-ai/DeepSeek-V3",
        "google/gemma-3-4b-pt",
        "microsoft/Phi-3-mini-4k-instruct",
        "openai/whisper-small",
        "google/vit-base-patch16-224",
        "bigscience/bloom-560m",
        "facebook/opt-350m",
    ],
)
def test_weights_of_every_family_are_those_of_the_published_count(name: str) -> None:
    made = model(name)
    job = Job(model=made, batch=1, seq_len=64, task="forward", optimizer=None)
    found = peak_by_formula(job)

    assert made.params is not None
    assert found.phases[0].allocated_bytes == pytest.approx(2 * made.params, rel=0.03)


def test_the_peak_grows_with_every_row() -> None:
    sizes = [peak_by_formula(replace(FULL, batch=batch)).peak_bytes for batch in (1, 2, 3, 4)]
    steps = [sizes[at + 1] - sizes[at] for at in range(3)]

    assert sizes == sorted(sizes)
    assert max(steps) == pytest.approx(min(steps), rel=0.2)


def test_accumulation_adds_the_gradients_to_the_second_micro_step() -> None:
    once = peak_by_formula(FULL).peak_bytes
    twice = peak_by_formula(replace(FULL, grad_accum=4)).peak_bytes

    assert twice - once == pytest.approx(2 * 494_032_768, rel=0.3)


def test_a_network_without_a_width_is_not_counted_as_one_of_width_one() -> None:
    config = {"model_type": "resnet", "hidden_sizes": [256, 512], "depths": [3, 4]}
    strange = replace(FULL, model=ModelSpec(name="resnet", config=config, source="config.json"))

    with pytest.raises(ValueError, match="no width"):
        peak_by_formula(strange)


def test_targets_that_no_module_has_are_told() -> None:
    wrong = replace(LORA, lora=LoraSpec(rank=8, targets=("q_poj",)))

    assert any("q_poj" in one for one in peak_by_formula(wrong).assumptions)
    assert not any("adapter" in one for one in peak_by_formula(LORA).assumptions)
