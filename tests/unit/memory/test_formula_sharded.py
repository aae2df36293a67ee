"""The formulas against peaks that torch counted on one rank of several."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.lab.protocol import decode
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.model.job import Job, LoraSpec, ModelSpec, OptimizerSpec, ShardingSpec
from oomdoctor.record import replace

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "streams"
SHARDED = sorted(
    path for kind in ("ddp", "fsdp1", "fsdp2") for path in FOLDER.glob(f"{kind}-*.json.xz")
)
LLAMA = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
JOB = Job(model=ModelSpec(name="llama", config=LLAMA, source="made up"), seq_len=256)
LINEAR = LoraSpec(targets=("all-linear",))


def peak(kind: str, ranks: int = 4, **changes: Any) -> int:
    spec = replace(changes.pop("sharding", ShardingSpec()), kind=kind, ranks=ranks)
    return peak_by_formula(replace(JOB, sharding=spec, **changes)).peak_bytes


def parts(job: Job) -> dict[str, int]:
    return {part.name: part.bytes for part in peak_by_formula(job).categories}


def trained() -> int:
    return sum(part.bytes for part in peak_by_formula(JOB).categories if part.name == "weights")


@pytest.mark.parametrize("path", SHARDED, ids=lambda path: path.name.partition(".")[0])
def test_the_peak_of_a_recorded_rank_is_met(path: Path) -> None:
    facts: Any = json.loads(lzma.decompress(path.read_bytes()))["facts"]

    found = peak_by_formula(decode(Job, facts["job"])).peak_bytes

    told = max(one["allocated_bytes"] for one in facts["peaks"].values())
    assert found == pytest.approx(told, rel=0.03)


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_gradients_stay_whole_while_they_accumulate(kind: str) -> None:
    assert peak(kind, 8, grad_accum=4) > peak(kind, 8) + trained() // 2


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_weights_that_are_not_freed_after_forward_stay_for_backward(kind: str) -> None:
    kept = peak(kind, sharding=ShardingSpec(reshard=False))

    assert kept > peak(kind) + trained() // 4


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_a_model_that_is_one_unit_is_gathered_whole(kind: str) -> None:
    assert peak(kind, sharding=ShardingSpec(wrap="whole")) > peak(kind) + trained()


def test_a_trainer_keeps_fp32_weights_of_what_fsdp_trains_in_16_bits() -> None:
    spec = ShardingSpec(kind="fsdp2", ranks=4)

    narrow, wide = (parts(replace(JOB, amp=amp, sharding=spec)) for amp in (None, "bf16"))

    assert wide["weights"] == pytest.approx(2 * narrow["weights"], rel=0.01)
    assert wide["optimizer"] == pytest.approx(2 * narrow["optimizer"], rel=0.01)


def test_a_plain_loop_has_zero_fill_buckets_of_half_a_billion_values() -> None:
    trainer, plain = (peak("zero3", framework=one) for one in ("transformers", "torch"))

    assert plain - trainer in range(990_000_000, 1_100_000_000)


def test_zero_steps_beside_its_part_in_16_bits_and_in_fp32() -> None:
    spec = ShardingSpec(kind="zero2", ranks=2)
    job = replace(JOB, seq_len=16, sharding=spec)
    made = peak_by_formula(job)
    share = trained() // 2

    assert made.peak_phase.startswith("step")
    assert made.peak_bytes > trained() + 6 * share + 3 * share + share


def test_a_frozen_layer_under_zero3_saves_its_input() -> None:
    """DeepSpeed's linear layer saves it whatever is trained."""
    plain, split = (
        parts(replace(JOB, method="lora", lora=LINEAR, sharding=ShardingSpec(kind=kind, ranks=4)))
        for kind in ("ddp", "zero3")
    )

    assert split["activation"] > plain["activation"] + 8 * 256 * (3 * 1024 + 4096)


def test_states_on_the_host_leave_no_part_of_zero_on_the_card() -> None:
    spec = OptimizerSpec(offload="cpu")

    away = parts(replace(JOB, optimizer=spec, sharding=ShardingSpec(kind="zero2", ranks=4)))

    assert "optimizer" not in away


@pytest.mark.parametrize("kind", ["", "ddp", "fsdp1", "fsdp2", "zero1"])
def test_two_gradients_of_a_shared_table_are_added_beside_both(kind: str) -> None:
    """What autograd adds for a weight of two modules is a third tensor of its size."""
    config = {**LLAMA, "num_hidden_layers": 1, "vocab_size": 200_000, "tie_word_embeddings": True}
    spec = ShardingSpec(kind=kind, ranks=2)
    job = replace(JOB, seq_len=4, sharding=spec, model=replace(JOB.model, config=config))
    table = 2 * 200_000 * 1024

    found = peak_by_formula(replace(job, optimizer=OptimizerSpec(name="sgd")))

    assert found.peak_bytes > 4 * table  # the weight as well
