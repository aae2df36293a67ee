"""The flat tensors of ZeRO and FSDP: a rank's partition, the gathered unit of one layer."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derive import derive
from oomdoctor.memory import physics
from oomdoctor.memory.fingerprint import fingerprint
from oomdoctor.units import format_size
from tests.unit.facts.stated import book

PARAMS = 7_615_616_512  # Qwen2.5-7B
LLAMA_LAYER = 218_112_000  # of Llama-3.1-8B: 2 x 4096 x (4096 + 1024) + 3 x 4096 x 14336 + 2 x 4096

Values = dict[str, "bool | float | str"]
QWEN: Values = {"model.name": "Qwen/Qwen2.5-7B", "dist.world_size": 8}
NAMED: Values = {"model.name": "example-org/some-model-8B", "dist.world_size": 2}


def size_of(count: float) -> str:
    return format_size(int(count))


def facts_of(values: Values) -> dict[str, object]:
    found = physics.derive(derive(book(values)))
    return {key: fact.value for key, fact in found.facts.items() if key.startswith("fingerprint.")}


@pytest.mark.parametrize("kind", ["zero1", "zero2", "zero3", "fsdp1", "fsdp2"])
def test_a_fp32_partition_of_a_sharded_job_is_an_optimizer_tensor(kind: str) -> None:
    request = size_of(PARAMS * 4 / 8)
    facts = facts_of({**QWEN, "dist.kind": kind, "oom.requested": request})
    assert facts["fingerprint.optimizer"] is True
    assert facts["fingerprint.best"] == "partition*4"


def test_a_16_bit_partition_may_be_weights_or_gradients() -> None:
    request = size_of(PARAMS * 2 / 8)
    facts = facts_of({**QWEN, "dist.kind": "zero3", "oom.requested": request})
    assert facts["fingerprint.weight"] is True
    assert "fingerprint.optimizer" not in facts


@pytest.mark.parametrize("element", [2, 4])
def test_the_parameters_of_one_layer_are_the_unit_that_fsdp_gathers(element: int) -> None:
    values: Values = {"model.name": "meta-llama/Llama-3.1-8B", "dist.kind": "fsdp1"}
    found = fingerprint(
        derive(book({**values, "oom.requested": size_of(LLAMA_LAYER * element)}))
    ).matches
    assert f"layer*{element}" in [match.expression for match in found]


def test_without_sharding_there_is_no_partition_for_the_optimizer() -> None:
    facts = facts_of({**QWEN, "dist.kind": "ddp", "oom.requested": size_of(PARAMS * 4 / 8)})
    assert "fingerprint.optimizer" not in facts


def test_a_size_in_the_name_is_a_weak_match_that_counts() -> None:
    values: Values = {**NAMED, "dist.kind": "zero2", "oom.requested": "14.50 GiB"}
    (match,) = fingerprint(derive(book(values))).matches
    assert (match.expression, match.assumed) == ("partition*4", ("partition",))
    assert 0.3 <= match.weight < 0.5
    assert facts_of(values)["fingerprint.optimizer"] is True


@pytest.mark.parametrize(
    ("change", "request_size"),
    [({}, "12.00 GiB"), ({"dist.kind": "ddp"}, "14.50 GiB"), ({"lora.on": True}, "14.50 GiB")],
)
def test_a_size_in_the_name_matches_only_near_it_and_only_flat_full_training(
    change: Values, request_size: str
) -> None:
    values: Values = {**NAMED, "dist.kind": "zero2", "oom.requested": request_size, **change}
    assert "fingerprint.optimizer" not in facts_of(values)


def test_more_ranks_than_parameters_make_no_partition() -> None:
    values: Values = {**NAMED, "dist.kind": "zero2", "dist.world_size": 10**12}
    assert "fingerprint.optimizer" not in facts_of({**values, "oom.requested": "14.50 GiB"})


@pytest.mark.parametrize(("width", "expected"), [(4, True), (2, False)])
def test_four_bytes_for_each_trained_parameter_are_one_flat_copy(
    width: int, *, expected: bool
) -> None:
    values = {**QWEN, "train.full_finetune": True, "oom.requested": size_of(PARAMS * width)}
    assert facts_of(values)["fingerprint.flat_copy"] is expected


@pytest.mark.parametrize(
    "more",
    [{"lora.on": True}, {"oom.requested": "100.00 MiB"}, {"train.full_finetune": False}],
)
def test_an_adapter_or_a_small_request_is_no_flat_copy(more: Values) -> None:
    values = {**QWEN, "train.full_finetune": True, "oom.requested": size_of(PARAMS * 4), **more}
    assert "fingerprint.flat_copy" not in facts_of(values)
