"""Weights, gradients, states and their bounds, against figures that were counted or measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.facts.derive import derive
from oomdoctor.memory import physics, states
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import GIB, book

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

LLAMA_7B = 6_738_415_616
LLAMA_TABLES = 2 * 32000 * 4096
Values = dict[str, "bool | float | str"]


def job(facts: Values, *, closes: tuple[str, ...] = ("train-config",)) -> FactBook:
    return physics.derive(derive(book(facts, closes=closes)))


def llama(facts: Values) -> FactBook:
    return job({"model.name": "meta-llama/Llama-2-7b-hf", **facts})


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"train.base_dtype": "fp32"}, 4 * LLAMA_7B),
        ({"train.base_dtype": "bf16"}, 2 * LLAMA_7B),
        ({"train.base_dtype": "fp16"}, 13_476_831_232),
        (
            {"quant.kind": "bnb4"},
            int((LLAMA_7B - LLAMA_TABLES) * 0.5625 + 2 * LLAMA_TABLES),
        ),
        (
            {"quant.kind": "bnb4", "quant.double": True, "quant.kbit_prepared": True},
            int((LLAMA_7B - LLAMA_TABLES) * 0.516 + 4 * LLAMA_TABLES),
        ),
        ({"quant.kind": "bnb8"}, LLAMA_7B - LLAMA_TABLES + 2 * LLAMA_TABLES),
    ],
)
def test_weights_are_parameters_times_their_form(facts: Values, expected: int) -> None:
    assert llama(facts).value("states.weights") == expected


def test_an_unknown_dtype_gives_no_weights() -> None:
    assert llama({}).get("states.weights") is None


def test_weights_are_split_over_the_ranks_that_share_them() -> None:
    made = llama({"train.base_dtype": "bf16", "dist.kind": "fsdp2", "dist.world_size": 8})

    assert made.value("states.weights") == 2 * LLAMA_7B // 8


FULL: Values = {"lora.on": False, "job.task": "sft", "optimizer.name": "adamw_torch"}


def test_full_training_in_fp32_takes_sixteen_bytes_per_parameter() -> None:
    made = llama({**FULL, "train.param_dtype": "fp32"})

    assert made.value("states.total") == 16 * LLAMA_7B
    assert made.value("states.total") == made.value("states.static_high")


def test_pure_bf16_training_keeps_bf16_states() -> None:
    made = llama({**FULL, "train.param_dtype": "bf16"})

    assert made.value("states.optimizer") == 4 * LLAMA_7B
    assert made.value("states.total") == 8 * LLAMA_7B


def test_zero_keeps_fp32_masters_and_splits_by_stage() -> None:
    zero2 = llama({**FULL, "train.param_dtype": "bf16", "dist.kind": "zero2", "dist.world_size": 4})

    assert zero2.value("states.weights") == 2 * LLAMA_7B
    assert zero2.value("states.gradients") == 2 * LLAMA_7B // 4
    assert zero2.value("states.optimizer") == 12 * LLAMA_7B // 4


@pytest.mark.parametrize(
    ("name", "weight", "expected"),
    [
        ("adamw_torch_fused", 4.0, 8.0),
        ("adamw_torch", 2.0, 4.0),
        ("adamw_bnb_8bit", 4.0, 2.03125),
        ("paged_adamw_32bit", 2.0, 8.0),
        ("lion_8bit", 4.0, 1.015625),
        ("lion_32bit", 2.0, 4.0),
        ("adafactor", 4.0, 0.0),
        ("sgd", 4.0, 0.0),
        ("galore_adamw", 4.0, None),
        ("somebodys_own", 4.0, None),
    ],
)
def test_optimizers_keep_what_their_kind_keeps(
    name: str, weight: float, expected: float | None
) -> None:
    assert states.state_bytes(name, weight) == expected


def test_an_adapter_has_fp32_gradients_and_states() -> None:
    made = llama(
        {
            "lora.on": True,
            "lora.rank": 8,
            "lora.targets": "q_proj,v_proj",
            "train.base_dtype": "bf16",
            "optimizer.name": "adamw_torch",
        }
    )

    assert made.value("states.gradients") == 4 * 4_194_304
    assert made.value("states.optimizer") == 8 * 4_194_304
    assert made.value("states.static_high") == 4 * LLAMA_7B + 16 * 4_194_304


def test_offloaded_states_take_nothing_on_the_card() -> None:
    made = llama({**FULL, "train.param_dtype": "bf16", "optimizer.offload": "cpu"})

    assert made.value("states.optimizer") == 0


def test_inference_has_neither_gradients_nor_states() -> None:
    made = llama({"job.task": "generate", "train.base_dtype": "bf16", "quant.kind": "none"})

    assert made.value("states.total") == 2 * LLAMA_7B
    assert made.value("states.static_high") == 4 * LLAMA_7B


def test_what_the_upper_bound_leaves_over_must_be_something_else() -> None:
    made = job({"model.name": "Qwen/Qwen2.5-0.5B", "torch.allocated": "20.00 GiB"})

    expected = (20 * GIB - 16 * 494_032_768) / (20 * GIB)
    assert made.value("states.rest_share") == pytest.approx(expected)


def test_no_rest_is_claimed_where_the_model_is_unknown() -> None:
    made = job({"model.name": "somebody/something", "torch.allocated": "20.00 GiB"})

    assert made.get("states.rest_share") is None


def test_no_rest_is_claimed_beside_an_engine_or_other_networks() -> None:
    facts: Values = {"model.name": "Qwen/Qwen2.5-0.5B", "torch.allocated": "20.00 GiB"}

    assert job({**facts, "gen.colocated_engine": True}).get("states.rest_share") is None
    assert job({**facts, "job.task": "diffusion"}).get("states.rest_share") is None


def test_a_reference_model_raises_the_upper_bound() -> None:
    base = llama({**FULL})
    pairs = llama({**FULL, "job.task": "dpo"})

    difference = pairs.facts["states.static_high"].value - base.facts["states.static_high"].value
    assert difference == 4 * LLAMA_7B


def test_a_bound_over_unknown_ranks_is_an_assumption() -> None:
    assert llama(FULL).facts["states.static_low"].origin is Origin.ASSUMED
    single = llama({**FULL, "dist.world_size": 1})
    assert single.facts["states.static_low"].origin is Origin.DERIVED


@given(
    dtype=st.sampled_from(("fp32", "bf16")),
    optimizer=st.sampled_from(("adamw_torch", "adamw_bnb_8bit", "adafactor", "sgd")),
    kind=st.sampled_from(("none", "ddp", "zero1", "zero2", "zero3", "fsdp2")),
    ranks=st.integers(min_value=2, max_value=64),
)
def test_the_bounds_hold_the_estimate(dtype: str, optimizer: str, kind: str, ranks: int) -> None:
    made = llama(
        {
            **FULL,
            "train.param_dtype": dtype,
            "optimizer.name": optimizer,
            "dist.kind": kind,
            "dist.world_size": ranks,
        }
    )

    low, total = made.facts["states.static_low"].value, made.facts["states.total"].value
    whole_bytes = 3  # each of three terms is cut to whole bytes
    assert low - whole_bytes <= total <= made.facts["states.static_high"].value


@pytest.mark.parametrize(
    ("kind", "expected"), [("ddp", 2 * LLAMA_7B), ("fsdp2", None), ("none", None)]
)
def test_ddp_buckets_are_as_large_as_the_gradients(kind: str, expected: int | None) -> None:
    made = llama({**FULL, "train.param_dtype": "bf16", "dist.kind": kind, "dist.world_size": 2})

    assert made.value("overheads.ddp_buckets") == expected


def test_a_foreach_step_copies_the_gradients_and_a_fused_one_does_not() -> None:
    foreach = llama({**FULL, "train.param_dtype": "fp32"})
    fused = llama({**FULL, "train.param_dtype": "fp32", "optimizer.name": "adamw_torch_fused"})

    assert foreach.value("overheads.optimizer_step") == 4 * LLAMA_7B
    assert fused.value("overheads.optimizer_step") == 0


def test_the_kbit_preparation_adds_two_bytes_per_table_value() -> None:
    made = job({"model.name": "meta-llama/Meta-Llama-3-8B", "quant.kbit_prepared": True})

    assert made.value("overheads.kbit_upcast") == 2 * 2 * 128_256 * 4096


def test_the_kbit_preparation_adds_two_bytes_per_weight_of_a_16_bit_model() -> None:
    plain: Values = {"quant.kbit_prepared": True}
    text = "model = load(torch_dtype=torch.float16)\nprepare_model_for_kbit_training(model)"
    made = llama({**plain, "job.text": text})
    quantised = llama({**plain, "job.text": text + "\nload_in_4bit=True"})

    assert made.value("overheads.kbit_upcast") == 2 * LLAMA_7B
    assert made.facts["overheads.kbit_upcast"].origin is Origin.ASSUMED
    assert quantised.value("overheads.kbit_upcast") == 2 * 2 * 32_000 * 4096


def test_weights_that_an_engine_quantises_are_read_in_their_own_width_first() -> None:
    made = llama({"quant.at_load": True, "quant.kind": "fp8", "oom.capacity": "20.00 GiB"})
    split = llama({"quant.at_load": True, "serve.tensor_parallel": 2})

    assert made.value("states.load_weights") == 2 * LLAMA_7B
    assert made.value("states.load_share") == pytest.approx(2 * LLAMA_7B / (20 << 30))
    assert split.value("states.load_weights") == LLAMA_7B


def test_weights_of_other_jobs_are_read_as_they_are_held() -> None:
    made = llama({"train.base_dtype": "bf16", "quant.kind": "none"})

    assert made.value("states.load_weights") == made.value("states.weights")
