"""Buckets, offloading, gathering and checkpoints in bytes."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derivation import apply
from oomdoctor.memory.dist_sizes import STEPS
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book

BILLION = 10**9
Values = dict[str, "bool | int | float | str"]
ZERO = ("zero-config",)


def value(key: str, facts: Values, *, closes: tuple[str, ...] = ()) -> object:
    return apply(book(facts, closes=closes), STEPS).value(key)


def test_few_ranks_are_taken_to_share_one_machine() -> None:
    made = apply(book({"dist.world_size": 8}), STEPS)

    found = made.get("dist.nodes")
    assert found is not None
    assert (found.value, found.origin, made.value("dist.node_ranks")) == (1, Origin.ASSUMED, 8)
    assert value("dist.nodes", {"dist.world_size": 16}) is None
    assert value("dist.node_ranks", {"dist.world_size": 16, "dist.nodes": 2}) == 8


def test_buckets_are_as_large_as_the_gradients_unless_these_are_views() -> None:
    facts: Values = {"dist.kind": "ddp", "part.gradients": 12 * BILLION}

    assert value("dist.buckets", facts) == 12 * BILLION
    assert value("dist.buckets", {**facts, "dist.bucket_views": True}) is None
    assert value("dist.buckets", {**facts, "dist.kind": "fsdp2"}) is None


def test_pictures_that_wait_are_counted_for_all_workers_and_ranks() -> None:
    facts: Values = {
        "data.workers": 4,
        "train.micro_batch": 2,
        "vision.image_pixels": 10**6,
        "dist.node_ranks": 8,
    }

    assert value("data.buffered", facts) == 4 * 2 * 2 * 12 * 10**6 * 8
    assert value("data.buffered", {**facts, "data.prefetch": 8}) == 4 * 8 * 2 * 12 * 10**6 * 8


@pytest.mark.parametrize(
    ("facts", "closes", "values", "size"),
    [
        ({"dist.kind": "zero2"}, ZERO, 5 * 10**8, BILLION),
        ({"dist.kind": "zero2", "zero.overlap": True}, ZERO, 5 * 10**8, 2 * BILLION),
        ({"dist.kind": "zero3", "zero.overlap": True}, ZERO, 5 * 10**8, BILLION),
        ({"dist.kind": "zero2", "zero.reduce_bucket": 10**8}, (), 10**8, 2 * 10**8),
        (
            {"dist.kind": "zero2", "zero.reduce_auto": True, "model.hidden": 4096},
            ZERO,
            4096**2,
            2 * 4096**2,
        ),
        ({"dist.kind": "zero2", "zero.reduce_auto": True}, ZERO, None, None),
        ({"dist.kind": "zero2"}, (), None, None),
        ({"dist.kind": "ddp"}, ZERO, None, None),
    ],
)
def test_zero_keeps_one_bucket_or_two(
    facts: Values, closes: tuple[str, ...], values: int | None, size: int | None
) -> None:
    made = apply(book(facts, closes=closes), STEPS)

    assert (made.value("zero.reduce_values"), made.value("zero.reduce_bytes")) == (values, size)


def test_zero3_may_keep_a_billion_values_unless_told_otherwise() -> None:
    facts: Values = {"dist.kind": "zero3"}

    assert value("zero.live_values", facts, closes=ZERO) == BILLION
    assert value("zero.live_values", facts) is None
    assert value("zero.live_values", {**facts, "zero.max_live": 10**8}) == 10**8
    assert value("zero.live_values", {"dist.kind": "zero2"}, closes=ZERO) is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"optimizer.offload": "cpu", "dist.kind": "zero2"}, 16 * 7),
        ({"optimizer.offload": "cpu", "dist.param_offload": "cpu", "dist.kind": "zero3"}, 18 * 7),
        ({"dist.param_offload": "cpu", "dist.kind": "zero3"}, 2 * 7),
        ({"dist.param_offload": "cpu", "dist.kind": "fsdp2"}, 18 * 7),
        ({"optimizer.offload": "cpu", "dist.kind": "zero2", "dist.nodes": 2}, 8 * 7),
        ({"optimizer.offload": "none", "dist.kind": "zero2"}, None),
    ],
)
def test_offloaded_states_are_16_bytes_per_trained_value(
    facts: Values, expected: int | None
) -> None:
    job: Values = {
        "dist.world_size": 8,
        "train.trainable_params": 7 * BILLION,
        "model.params": 7 * BILLION,
    }
    wanted = None if expected is None else expected * BILLION

    assert value("host.offloaded", {**job, **facts}) == wanted


@pytest.mark.parametrize(
    ("facts", "each"),
    [
        ({"dist.kind": "fsdp1", "dist.state_dict": "full"}, 12),
        ({"dist.kind": "fsdp1", "dist.state_dict": "full", "save.only_model": True}, 4),
        ({"dist.kind": "fsdp2", "dist.state_dict": "sharded"}, None),
        ({"dist.kind": "zero3", "zero.gathers_on_save": True}, 2),
        ({"dist.kind": "zero3", "zero.gathers_on_save": False}, None),
    ],
)
def test_a_save_gathers_what_its_state_dict_holds(facts: Values, each: int | None) -> None:
    job: Values = {"model.params": 70 * BILLION, "train.full_finetune": True}
    wanted = None if each is None else each * 70 * BILLION

    assert value("host.gathered", {**job, **facts}) == wanted


@pytest.mark.parametrize(
    ("facts", "each"),
    [
        ({}, 12),
        ({"load.dtype": "bf16"}, 6),
        ({"load.dtype": "bf16", "dist.kind": "zero3"}, 14),
        ({"load.dtype": "bf16", "dist.kind": "fsdp2", "train.amp": "bf16"}, 12),
        ({"save.only_model": True}, 4),
        ({"load.dtype": "bf16", "dist.kind": "zero2", "save.only_model": True}, 2),
        ({"job.settings": "use_apollo = true"}, None),
        ({"train.full_finetune": False}, None),
    ],
)
def test_a_checkpoint_holds_weights_and_states(facts: Values, each: int | None) -> None:
    job: Values = {
        "train.full_finetune": True,
        "model.params": 7 * BILLION,
        "load.dtype": "fp32",
        "optimizer.name": "adamw_torch",
    }
    wanted = None if each is None else each * 7 * BILLION

    assert value("save.checkpoint", {**job, **facts}) == wanted
