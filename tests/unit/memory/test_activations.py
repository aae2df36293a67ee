"""Activations, logits, attention and caches, against measured coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.facts.derive import derive
from oomdoctor.memory import physics
from tests.unit.facts.stated import GIB, book

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

Values = dict[str, "bool | float | str"]
LLAMA = "meta-llama/Llama-2-7b-hf"


def step(facts: Values) -> FactBook:
    rows: Values = {"train.micro_batch": 1, "train.seq_len": 512}
    return physics.derive(derive(book({"model.name": LLAMA, **rows, **facts})))


@pytest.mark.parametrize(
    ("facts", "units"),
    [
        ({"model.name": LLAMA}, 22.85),
        ({"model.name": "meta-llama/Meta-Llama-3-8B"}, 24.6),
        ({"model.name": "Qwen/Qwen2.5-7B"}, 31.53),
        ({"model.name": LLAMA, "lora.on": True, "lora.targets": "all-linear"}, 33.64),
        ({"model.name": "Qwen/Qwen2.5-7B", "lora.on": True, "lora.targets": "all"}, 44.91),
        ({"model.name": LLAMA, "lora.on": True, "lora.targets": "q_proj,v_proj"}, 19.0),
        ({"model.name": LLAMA, "train.base_dtype": "fp32"}, 41.59),
    ],
)
def test_a_layer_saves_the_measured_units(facts: Values, units: float) -> None:
    made = step({**facts, "train.grad_checkpointing": False})

    unit = 512 * made.facts["model.hidden"].value * 2
    per_layer = made.facts["activations.estimate"].value / made.facts["model.layers"].value
    assert per_layer / unit == pytest.approx(units, abs=0.02)


def test_the_worked_example_of_seven_billion_parameters() -> None:
    without = step({"train.grad_checkpointing": False}).facts["activations.estimate"].value
    checkpointed = step({"train.grad_checkpointing": True}).facts["activations.estimate"].value

    assert without / GIB == pytest.approx(2.85, abs=0.01)
    assert checkpointed / GIB == pytest.approx(0.125 + 2.85 / 32, abs=0.01)


def test_eager_attention_adds_six_bytes_per_score() -> None:
    facts: Values = {"train.grad_checkpointing": False}

    eager = step({**facts, "attention.impl": "eager"}).facts["activations.estimate"].value
    sdpa = step({**facts, "attention.impl": "sdpa"}).facts["activations.estimate"].value

    assert eager - sdpa == 32 * 6 * 32 * 512 * 512


def test_unknown_checkpointing_gives_no_estimate() -> None:
    assert step({}).get("activations.estimate") is None


def test_logits_of_one_copy_and_of_the_peak() -> None:
    made = step(
        {"train.seq_len": 2048, "model.name": "Qwen/Qwen2.5-1.5B", "oom.capacity": "24 GiB"}
    )

    assert made.value("logits.one_copy") == 1_244_659_712
    assert made.value("logits.peak") == int(12.1 * 2048 * 151_936)
    assert made.value("logits.peak_share") == pytest.approx(12.1 * 2048 * 151_936 / (24 * GIB))


@pytest.mark.parametrize("how", ["chunked", "fused", "liger"])
def test_a_loss_that_never_sees_all_logits_has_no_peak(how: str) -> None:
    assert step({"loss.impl": how}).get("logits.peak") is None


def test_scores_grow_with_the_square_of_the_tokens() -> None:
    made = step({"train.micro_batch": 2, "oom.requested": "32.00 MiB"})

    assert made.value("attention.scores") == 2 * 32 * 512 * 512 * 2
    assert made.value("attention.scores_to_request") == 1.0


def test_the_cache_of_an_engine_is_that_of_one_longest_sequence() -> None:
    made = step({"serve.max_len": 4096})

    assert made.value("kv.total") == 2 * 32 * 4096 * 32 * 128 * 2


def test_the_cache_of_generation_counts_prompt_and_new_tokens() -> None:
    made = step({"gen.max_new_tokens": 512, "train.micro_batch": 4})

    assert made.value("kv.total") == 2 * 32 * 4 * 1024 * 32 * 128 * 2


GROWING = ("activations.estimate", "logits.peak", "logits.one_copy", "attention.scores")


@given(
    rows=st.integers(min_value=1, max_value=64),
    tokens=st.integers(min_value=1, max_value=32768),
    more=st.sampled_from(("train.micro_batch", "train.seq_len")),
    checkpointing=st.booleans(),
)
def test_everything_grows_with_rows_and_tokens(
    rows: int, tokens: int, more: str, checkpointing: bool
) -> None:
    facts: Values = {
        "train.micro_batch": rows,
        "train.seq_len": tokens,
        "train.grad_checkpointing": checkpointing,
        "attention.impl": "eager",
    }
    larger = {**facts, more: int(facts[more]) + 1}

    before, after = step(facts), step(larger)

    assert all(before.facts[key].value < after.facts[key].value for key in GROWING)
