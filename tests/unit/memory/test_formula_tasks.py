"""The formula beside traces: tasks, families and ways of packing that allocate in their own way.

Each figure is the peak that a trace with torch 2.13, transformers 5.24 and PEFT 0.21 had.
"""

from __future__ import annotations

import pytest

from oomdoctor.facts import model_configs
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.model.job import (
    GenerationSpec,
    Job,
    LoraSpec,
    ModelSpec,
    OptimizerSpec,
    QuantSpec,
)
from oomdoctor.record import replace

GIB = 1 << 30
ATTENTION = LoraSpec(targets=("q_proj", "k_proj", "v_proj", "o_proj"))
QWEN = "Qwen/Qwen2.5-0.5B"


def model(name: str) -> ModelSpec:
    """Return a model of the table."""
    known = model_configs.lookup(name)
    assert known is not None
    return ModelSpec(name=name, config=known.config, source="table", params=known.params)


def peak(job: Job) -> float:
    """Return the peak in GiB."""
    return peak_by_formula(job).peak_bytes / GIB


@pytest.mark.parametrize(
    ("name", "traced"),
    [
        ("facebook/bart-large", 4.81),
        ("facebook/mbart-large-50", 8.25),
        ("google/pegasus-xsum", 6.89),
        ("Helsinki-NLP/opus-mt-en-de", 1.59),
        ("google/mt5-small", 4.98),
    ],
)
def test_translators_have_two_stacks_and_a_tied_head_as_traced(name: str, traced: float) -> None:
    job = Job(model=model(name), task="seq2seq", batch=4, seq_len=512, target_len=512)

    assert peak(job) == pytest.approx(traced, rel=0.03)


@pytest.mark.parametrize(
    ("name", "traced"),
    [("google-bert/bert-base-uncased", 3.15), ("BAAI/bge-m3", 9.70)],
)
def test_pairs_of_sentences_take_two_passes_and_no_words_as_traced(
    name: str, traced: float
) -> None:
    job = Job(model=model(name), task="embedding", batch=32, seq_len=128)

    assert peak(job) == pytest.approx(traced, rel=0.03)


def test_only_answers_meet_the_vocabulary_in_grpo_as_traced() -> None:
    answers = GenerationSpec(batch=2, prompt=768, new_tokens=256)
    job = Job(
        model=model(QWEN),
        task="grpo",
        framework="trl",
        batch=2,
        seq_len=1024,
        lora=LoraSpec(targets=("q_proj", "v_proj")),
        generation=answers,
    )

    assert peak(job) == pytest.approx(3.60, rel=0.03)


def test_shared_keys_that_reach_torch_as_they_are_cost_every_score_as_traced() -> None:
    lora = LoraSpec(targets=("query_key_value",))
    job = Job(model=model("tiiuae/falcon-7b"), method="lora", lora=lora, seq_len=1024)

    assert peak(job) == pytest.approx(25.17, rel=0.05)


def test_experts_stay_in_16_bits_under_transformers_5_and_are_packed_before() -> None:
    job = Job(
        model=model("mistralai/Mixtral-8x7B-v0.1"),
        method="qlora",
        lora=ATTENTION,
        quant=QuantSpec(kind="nf4"),
        seq_len=1024,
    )

    assert peak(job) == pytest.approx(94.0, rel=0.03)
    assert peak(replace(job, versions={"transformers": "4.57.0"})) < 40


def test_a_module_that_is_saved_is_trained_as_a_copy_as_traced() -> None:
    lora = LoraSpec(targets=("q_proj", "v_proj"), modules_to_save=("embed_tokens", "lm_head"))
    job = Job(model=model(QWEN), method="lora", lora=lora, seq_len=1024)

    assert peak(job) == pytest.approx(5.34, rel=0.02)


def test_a_pattern_adapts_what_it_matches_and_a_broken_one_nothing() -> None:
    def adapters(pattern: str) -> int:
        job = Job(model=model(QWEN), method="lora", lora=LoraSpec(targets=(pattern,)))
        return {one.name: one.bytes for one in peak_by_formula(job).categories}.get("adapter", 0)

    assert adapters(r".*self_attn\.q_proj") < adapters(r".*_proj")
    assert adapters(r".*self_attn\.q_proj") > 0
    assert adapters(r".*(q_proj") == 0


@pytest.mark.parametrize(("name", "traced"), [("galore", 4.81), ("ademamix", 9.61)])
def test_states_are_projected_for_hidden_layers_alone_and_wide_in_bitsandbytes_as_traced(
    name: str, traced: float
) -> None:
    job = Job(model=model(QWEN), seq_len=1024, optimizer=OptimizerSpec(name=name))

    assert peak(job) == pytest.approx(traced, rel=0.04)
