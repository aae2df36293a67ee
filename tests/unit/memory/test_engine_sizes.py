"""Whole bases, caches of generations, and one sequence in vLLM's cache."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derivation import apply
from oomdoctor.memory.engine_sizes import STEPS
from tests.unit.facts.stated import GIB, book

Values = dict[str, "bool | int | float | str"]
LLAMA: Values = {
    "model.layers": 32,
    "model.heads": 32,
    "model.kv_heads": 8,
    "model.head_dim": 128,
    "model.params": 8_030_261_248,
    "model.vocab": 128256,
    "model.hidden": 4096,
    "model.tied": False,
}
PER_TOKEN = 128 * 1024
PARAMS = 8_030_261_248


def value(key: str, facts: Values, *, closes: tuple[str, ...] = ()) -> object:
    return apply(book({**LLAMA, **facts}, closes=closes), STEPS).value(key)


def test_a_whole_base_is_parameters_times_bytes_whoever_splits_it() -> None:
    assert value("load.whole", {"load.dtype": "bf16", "load.split": True}) == 2 * PARAMS


def test_a_quantised_base_is_smaller() -> None:
    whole = value("load.whole", {"load.dtype": "bf16", "quant.kind": "bnb4"})

    tables = 2 * 128256 * 4096
    assert whole == int((PARAMS - tables) * 0.5625 + tables * 2)


@pytest.mark.parametrize(
    ("facts", "each"),
    [
        ({"train.full_finetune": True}, 2 * 4),
        ({"lora.on": True, "train.trainable_params": PARAMS // 100}, 2 + 0.16),
    ],
)
def test_alone_on_a_card_stand_weights_gradients_and_states(facts: Values, each: float) -> None:
    share = value("load.alone_share", {**facts, "load.dtype": "bf16", "gpu.nominal": 2 * PARAMS})

    assert share == pytest.approx(each / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("facts", "rows"),
    [
        ({"rl.steps_per_generation": 4}, 32),
        ({"train.grad_accum": 8}, 64),
        ({"rl.use_vllm": True, "train.grad_accum": 8}, None),
        ({"job.task": "sft", "train.grad_accum": 8}, None),
        ({}, None),
    ],
)
def test_a_generation_keeps_the_cache_of_all_its_rows(facts: Values, rows: int | None) -> None:
    job: Values = {"job.task": "grpo", "train.micro_batch": 8, "gen.max_new_tokens": 4096}
    wanted = None if rows is None else rows * 4096 * PER_TOKEN

    assert value("rl.kv_cache", {**job, **facts}) == wanted


def test_a_generating_evaluation_keeps_a_cache_per_beam() -> None:
    job: Values = {
        "eval.generate": True,
        "eval.batch": 8,
        "gen.beams": 4,
        "train.seq_len": 1024,
        "gen.max_new_tokens": 256,
    }

    assert value("eval.generation", job) == 8 * 4 * 1280 * PER_TOKEN
    assert value("eval.generation", {**job, "eval.generate": False}) is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"serve.max_len": 8192}, GIB),
        ({"serve.max_len": 8192, "serve.kv_type": "fp8"}, GIB // 2),
        ({"model.max_positions": 131072}, 16 * GIB),
        ({"serve.max_len": 8192, "model.architecture": "Gemma3ForCausalLM"}, None),
        ({"serve.max_len": 8192, "job.framework": "trl"}, None),
    ],
)
def test_one_sequence_needs_its_cache(facts: Values, expected: int | None) -> None:
    assert value("serve.kv_one", {"job.framework": "vllm", **facts}) == expected


def test_the_room_for_caches_is_the_share_of_all_cards_without_the_weights() -> None:
    job: Values = {"job.framework": "vllm", "serve.share": 0.5, "gpu.nominal": 24 * GIB}

    assert value("serve.kv_room", job) == 12 * GIB - 2 * PARAMS
    two: Values = {**job, "serve.tensor_parallel": 2}
    assert value("serve.kv_room", two) == 24 * GIB - 2 * PARAMS


def test_trainer_and_engine_share_the_card() -> None:
    job: Values = {"part.states": 12 * GIB, "rl.engine_share": 0.3, "gpu.nominal": 24 * GIB}

    assert value("rl.states_share", job) == pytest.approx(0.8)
