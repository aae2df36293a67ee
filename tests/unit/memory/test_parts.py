"""The six parts of a job's memory, against counts and measured coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.facts.derive import derive
from oomdoctor.memory import parts, physics
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import GIB, book

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

LLAMA_7B = 6_738_415_616
Values = dict[str, "bool | float | str"]


def job(facts: Values, *, closes: tuple[str, ...] = ("train-config",)) -> FactBook:
    return parts.derive(physics.derive(derive(book(facts, closes=closes))))


def llama(facts: Values) -> FactBook:
    return job({"model.name": "meta-llama/Llama-2-7b-hf", "quant.kind": "none", **facts})


FULL: Values = {"job.task": "sft", "lora.on": False, "optimizer.name": "adamw_torch"}


@pytest.mark.parametrize(
    ("facts", "bytes_per_parameter"),
    [
        ({"train.base_dtype": "fp32"}, 4 + 4 + 8),
        ({"train.base_dtype": "bf16"}, 2 + 2 + 4),
        ({"train.base_dtype": "fp32", "optimizer.name": "adamw_8bit"}, 4 + 4 + 2 + 8 / 256),
        ({"train.base_dtype": "bf16", "optimizer.name": "adafactor"}, 2 + 2),
        ({"train.base_dtype": "bf16", "optimizer.in_backward": True}, 2 + 4),
        ({"train.base_dtype": "bf16", "optimizer.offload": "cpu"}, 2 + 2),
    ],
)
def test_states_of_a_full_training_are_parameters_times_their_bytes(
    facts: Values, bytes_per_parameter: float
) -> None:
    states = llama({**FULL, "dist.kind": "none", **facts}).value("part.states")

    assert isinstance(states, int)
    assert states == pytest.approx(LLAMA_7B * bytes_per_parameter, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "weights", "split"),
    [("zero1", 2 * LLAMA_7B, False), ("zero2", 2 * LLAMA_7B, False), ("zero3", 0, True)],
)
def test_parameters_leave_the_card_at_stage_three_alone(
    kind: str, weights: int, *, split: bool
) -> None:
    zero: Values = {**FULL, "train.amp": "bf16", "dist.world_size": 4}

    facts = llama({**zero, "dist.kind": kind, "dist.param_offload": "cpu"})

    assert facts.value("part.weights") == weights
    assert facts.value("load.split") is split


def test_deepspeed_keeps_sixteen_bytes_and_splits_them_by_stage() -> None:
    zero: Values = {**FULL, "train.amp": "bf16", "dist.world_size": 4}

    second = llama({**zero, "dist.kind": "zero2"})
    third = llama({**zero, "dist.kind": "zero3"})

    assert second.value("part.weights") == 2 * LLAMA_7B
    assert second.value("part.states") == pytest.approx(LLAMA_7B * (2 + 14 / 4), rel=1e-6)
    assert third.value("part.states") == pytest.approx(LLAMA_7B * 16 / 4, rel=1e-6)


def test_sharding_over_an_unknown_number_of_ranks_gives_no_weights() -> None:
    made = llama({**FULL, "train.base_dtype": "bf16", "dist.kind": "fsdp2"})

    assert made.get("part.weights") is None


@pytest.mark.parametrize(
    ("name", "targets", "rank", "expected"),
    [  # counted on the real models
        ("meta-llama/Llama-2-7b-hf", "q_proj,v_proj", 8, 4_194_304),
        ("meta-llama/Llama-2-7b-hf", "all-linear", 8, 19_988_480),
        ("meta-llama/Meta-Llama-3-8B", "q_proj,v_proj", 8, 3_407_872),
        ("meta-llama/Meta-Llama-3-8B", "all", 8, 20_971_520),
        ("Qwen/Qwen2.5-7B", "q_proj,v_proj", 8, 2_523_136),
        ("Qwen/Qwen2.5-7B", "all-linear", 8, 20_185_088),
    ],
)
def test_an_adapter_is_counted_exactly(name: str, targets: str, rank: int, expected: int) -> None:
    made = job({"model.name": name, "lora.on": True, "lora.rank": rank, "lora.targets": targets})

    assert made.value("train.trainable_params") == expected


def test_all_linears_of_a_family_with_fused_projections_are_its_own() -> None:
    made = job(
        {
            "model.name": "microsoft/Phi-3-mini-4k-instruct",
            "lora.on": True,
            "lora.rank": 8,
            "lora.targets": "all-linear",
        }
    )
    per_layer = (3072 + 3 * 3072) + 2 * 3072 + (3072 + 2 * 8192) + (8192 + 3072)

    assert made.value("train.trainable_params") == 32 * 8 * per_layer


def test_an_adapter_of_another_kind_is_not_counted_as_lora() -> None:
    made = job(
        {
            "model.name": "meta-llama/Llama-2-7b-hf",
            "lora.on": True,
            "lora.rank": 8,
            "lora.targets": "all",
            "job.settings": "finetuning_type = oft",
        }
    )

    assert made.get("train.trainable_params") is None


def test_trl_keeps_the_adapters_of_a_quantised_base_in_bf16_since_0_29() -> None:
    qlora: Values = {
        "quant.kind": "bnb4",
        "lora.on": True,
        "lora.rank": 8,
        "lora.targets": "q_proj,v_proj",
        "job.framework": "trl",
    }

    assert llama({**qlora, "env.trl": "1.16.0"}).value("part.adapters") == 2 * 4_194_304
    assert llama({**qlora, "env.trl": "0.24.0"}).value("part.adapters") == 4 * 4_194_304


STEP: Values = {
    "train.micro_batch": 4,
    "train.seq_len": 2048,
    "train.amp": "none",
    "train.base_dtype": "bf16",
    "loss.impl": "full",
}


def test_activations_follow_the_measured_units_with_and_without_checkpointing() -> None:
    unit = 4 * 2048 * 4096 * 2
    lora: Values = {"lora.on": True, "lora.targets": "all-linear", **STEP}

    plain = llama({**lora, "train.grad_checkpointing": False}).value("part.activations")
    kept = llama({**lora, "train.grad_checkpointing": True}).value("part.activations")

    assert plain == pytest.approx(32 * unit * 33.6, rel=0.01)
    assert kept == pytest.approx((32 + 33.6) * unit, rel=0.01)


def test_autocast_copies_fp32_linears_all_at_once_or_layer_by_layer() -> None:
    fp32: Values = {**FULL, **STEP, "train.base_dtype": "fp32", "train.amp": "bf16"}
    linears = LLAMA_7B - 2 * 32000 * 4096

    for on, share in ((False, 1), (True, 32)):
        made = llama({**fp32, "train.grad_checkpointing": on})
        formula = "activations.checkpointed" if on else "activations.plain"
        held, bare = made.value("part.activations"), made.value(formula)
        assert isinstance(held, int)
        assert isinstance(bare, int)
        assert held - bare == pytest.approx(2 * linears / share, abs=2)


def test_logits_take_twelve_bytes_per_value_unless_the_loss_is_fused() -> None:
    qwen: Values = {"model.name": "Qwen/Qwen2.5-7B", "train.micro_batch": 4, "train.seq_len": 2048}

    assert job({**qwen, "loss.impl": "full"}).value("part.logits") == pytest.approx(
        12.1 * 4 * 2048 * 152_064, abs=1
    )
    assert job({**qwen, "loss.impl": "liger"}).value("part.logits") == 0


def test_the_fused_loss_of_trl_holds_a_tile_of_a_fixed_size() -> None:
    qwen: Values = {
        "model.name": "Qwen/Qwen2.5-7B",
        "job.framework": "trl",
        "job.task": "sft",
        "env.trl": "1.16.0",
        "train.micro_batch": 8,
        "train.seq_len": 8192,
    }

    assert job(qwen).value("part.logits") == 4096 * 32768 * 6


def test_a_reward_model_has_no_logits_over_a_vocabulary() -> None:
    made = job({"model.name": "Qwen/Qwen2.5-7B", "job.task": "reward", "loss.impl": "full", **STEP})

    assert made.value("part.logits") == 0


def test_a_full_preference_training_holds_a_reference_as_well() -> None:
    full: Values = {**FULL, "job.task": "dpo", "ref.needed": True, "train.base_dtype": "bf16"}

    assert llama(full).value("part.weights") == 4 * LLAMA_7B
    assert llama({**full, "ref.separate": False}).value("part.weights") == 2 * LLAMA_7B


def test_a_mixture_of_experts_gets_no_activations() -> None:
    made = job({"model.name": "mistralai/Mixtral-8x7B-v0.1", **STEP, "lora.on": False})

    assert made.get("activations.plain") is None


@pytest.mark.parametrize(
    ("name", "expected", "origin"),
    [
        ("RTX 4090", 24081 << 20, Origin.DERIVED),
        ("H100", 81008 << 20, Origin.ASSUMED),
        ("A100-80GB", 81154 << 20, Origin.DERIVED),
    ],
)
def test_a_card_has_the_usual_memory_of_its_name(name: str, expected: int, origin: Origin) -> None:
    fact = job({"gpu.name": name}).facts["gpu.nominal"]

    assert (expected, origin) == (fact.value, fact.origin)


def test_a_card_whose_name_means_two_sizes_has_none() -> None:
    assert job({"gpu.name": "A100"}).get("gpu.nominal") is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.framework": "transformers", "env.transformers": "4.46.3"}, "fp32"),
        ({"job.framework": "transformers", "env.transformers": "5.24.0"}, "bf16"),
        ({"job.framework": "trl", "env.transformers": "5.24.0", "env.trl": "1.16.0"}, "fp32"),
        ({"job.framework": "trl", "env.transformers": "4.46.3", "env.trl": "0.12.2"}, "fp32"),
    ],
)
def test_a_dtype_that_nobody_states_is_that_of_the_library(facts: Values, expected: str) -> None:
    settings = "model_name_or_path = meta-llama/Llama-2-7b-hf"

    made = llama({**facts, "job.settings": settings, "model.dtype": "bf16"})

    assert made.value("load.dtype") == expected


def test_llamafactory_trains_a_whole_model_in_fp32_unless_it_is_pure() -> None:
    whole: Values = {**FULL, "job.framework": "llamafactory", "train.base_dtype": "bf16"}

    assert llama({**whole, "train.amp": "bf16"}).value("load.dtype") == "fp32"
    assert llama({**whole, "train.param_dtype": "bf16"}).value("load.dtype") == "bf16"


def test_a_complete_config_without_sharding_is_only_assumed_to_be_on_one_card() -> None:
    fact = llama({"job.framework": "axolotl"}).facts["load.split"]

    assert (fact.value, fact.origin) == (False, Origin.ASSUMED)
    assert llama({"job.framework": "axolotl", "dist.kind": "zero3"}).get("load.split") is None
    assert llama({"dist.world_size": 1}).facts["load.split"].origin is Origin.DERIVED


def test_the_peak_is_the_highest_point_over_time_and_below_the_sum_of_all_parts() -> None:
    made = llama(
        {
            "lora.on": True,
            "lora.rank": 8,
            "lora.targets": "all-linear",
            "optimizer.name": "adamw_torch",
            "train.grad_checkpointing": True,
            "gpu.total": 24 * GIB,
            **STEP,
        }
    )

    values = [made.value(key) for key in parts.PARTS]
    assert all(isinstance(value, int) for value in values)
    peak = made.value("peak.formula")
    assert isinstance(peak, int)
    assert 0.7 * sum(int(value or 0) for value in values) < peak
    assert peak < sum(int(value or 0) for value in values)
    assert made.value("peak.share") == pytest.approx(peak / (24 * GIB))
