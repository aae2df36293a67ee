from __future__ import annotations

from importlib.util import find_spec

import pytest

pytest.importorskip("torch")

import torch
from torch import distributed

from oomdoctor.model.job import (
    LoraSpec,
    OptimizerSpec,
    QuantSpec,
    ShardingSpec,
)
from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.sharding.choice import sharded as strategy
from tests.worker.jobs import PARAMETERS
from tests.worker.sharding.traces import (
    bytes_at,
    bytes_left,
    left,
    sharded,
    traced,
)

WEIGHTS = 4 * PARAMETERS
needs_deepspeed = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed")


def test_ddp_keeps_buckets_of_all_gradients_beside_the_weights() -> None:
    stream = traced(sharded("ddp"))

    assert bytes_at(stream, "phase", "step 1") in range(2 * WEIGHTS, 2 * WEIGHTS + 4096)


def test_gradients_that_are_views_of_buckets_are_not_there_twice() -> None:
    views = ShardingSpec(bucket_views=True)

    plain = bytes_at(traced(sharded("ddp")), "part", "optimizer")
    viewed = bytes_at(traced(sharded("ddp", sharding=views)), "part", "optimizer")

    assert plain - viewed in range(WEIGHTS - 4096, WEIGHTS + 4096)


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_fsdp_leaves_a_rank_its_part_of_weights_and_states(kind: str, ranks: int) -> None:
    stream = traced(sharded(kind, ranks))

    assert bytes_left(stream, "weights") in range(WEIGHTS // ranks, WEIGHTS // ranks + 4096)
    assert 2 * WEIGHTS // ranks == bytes_left(stream, "optimizer")


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_fsdp_gathers_on_streams_of_its_own(kind: str) -> None:
    stream = traced(sharded(kind))

    assert len({one.cuda_stream for one in stream.allocations}) > 2


def test_fsdp1_says_which_blocks_other_streams_use() -> None:
    stream = traced(sharded("fsdp1"))

    assert any(mark.kind == "use" for mark in stream.marks)


def test_accumulated_gradients_stay_whole_until_the_last_micro_step() -> None:
    def highest(count: int) -> int:
        stream = traced(sharded("fsdp2", 8, grad_accum=count))
        live = peak = 0
        for event in stream.events:
            size = stream.allocations[event if event >= 0 else ~event].size
            live += size if event >= 0 else -size
            peak = max(peak, live)
        return peak

    assert highest(3) > highest(1) + WEIGHTS // 2


def test_weights_on_the_host_take_nothing_between_steps() -> None:
    offloaded = ShardingSpec(offload_params=True)

    stream = traced(sharded("fsdp2", sharding=offloaded))

    assert sum(one.size for one in left(stream)) < WEIGHTS // 4 + 20_000_000
    assert bytes_left(stream, "optimizer") == 0


@needs_deepspeed
@pytest.mark.parametrize(("kind", "weights"), [("zero2", 1), ("zero3", 4)])
def test_zero_keeps_fp32_copies_and_states_of_its_partition(kind: str, weights: int) -> None:
    stream = traced(sharded(kind, dtype="bf16", framework="transformers"))

    part = PARAMETERS // 4
    assert bytes_left(stream, "weights") in range(
        2 * PARAMETERS // weights - 4096, 2 * PARAMETERS // weights + 70_000
    )
    assert bytes_left(stream, "optimizer") in range(12 * part, 12 * part + 200_000)


@needs_deepspeed
def test_states_that_zero_offloads_are_not_on_the_card() -> None:
    job = sharded("zero2", dtype="bf16", optimizer=OptimizerSpec(offload="cpu"))

    assert bytes_left(traced(job), "optimizer") == 0


@needs_deepspeed
def test_zero3_leaves_torch_as_it_was() -> None:
    plain = torch.nn.functional.linear

    traced(sharded("zero3", dtype="bf16"))

    assert plain is torch.nn.functional.linear


def test_no_process_group_is_left_behind() -> None:
    traced(sharded("ddp"))

    assert not distributed.is_initialized()


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("fsdp2", {"quant": QuantSpec(kind="nf4")}, "a quantised base under fsdp2"),
        ("zero3", {"quant": QuantSpec(kind="nf4")}, "a quantised base under zero3"),
        ("fsdp1", {"optimizer": OptimizerSpec(name="adamw-8bit")}, "adamw-8bit under fsdp1"),
        ("zero2", {"optimizer": OptimizerSpec(name="galore")}, "galore under zero2"),
        ("fsdp2", {"reference": "separate"}, "a second model under fsdp2"),
        ("hsdp", {}, "hsdp is not traced"),
    ],
)
def test_what_cannot_be_traced_over_ranks_is_refused_by_name(
    kind: str, changes: dict[str, object], why: str
) -> None:
    with pytest.raises(UnsupportedError, match=why):
        strategy(sharded(kind, **changes))


def test_an_adapter_alone_is_exchanged() -> None:
    stream = traced(sharded("ddp", lora=LoraSpec(rank=4, targets=("q_proj", "v_proj"))))

    buckets = [one for one in left(stream) if one.phase == "load" and not one.category]
    assert sum(one.size for one in buckets) < WEIGHTS // 10
