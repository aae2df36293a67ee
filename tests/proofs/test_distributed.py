"""What data parallel, sharding and their launchers do, shown in one process on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, llama, rows
from tests.proofs.world import lone_world, world_of_four

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")
peft = pytest.importorskip("peft")
nn = torch.nn

__all__ = ["lone_world", "world_of_four"]


@pytest.fixture
def with_fsdp(monkeypatch: pytest.MonkeyPatch, lone_world: None) -> None:
    """Let the Trainer's accelerator keep its FSDP plugin, which it drops on a CPU."""
    del lone_world

    def accelerator(**given: Any) -> Any:
        made = accelerate.Accelerator(**given)
        made.state.fsdp_plugin = given["fsdp_plugin"]
        return made

    monkeypatch.setattr(transformers.trainer, "Accelerator", accelerator)


@proves("fsdp-double-checkpoint")
@pytest.mark.usefixtures("with_fsdp")
@pytest.mark.parametrize("key", ["activation_checkpointing", "gradient_checkpointing"])
def test_checkpointing_twice_under_fsdp_is_refused(key: str, tmp_path: Path) -> None:
    """fsdp_config.activation_checkpointing with the Trainer's own checkpointing raises."""
    inside = {"activation_checkpointing": True}
    made = arguments(tmp_path, fsdp=True, fsdp_config=inside, **{key: True})
    with pytest.raises(ValueError, match="can't both be set to True"):
        transformers.Trainer(model=llama(), args=made, train_dataset=rows())


@proves("fsdp-and-deepspeed")
def test_fsdp_and_deepspeed_exclude_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With both set Trainer raises ValueError, before it looks at the launcher."""
    made = transformers.Trainer.create_accelerator_and_postprocess

    def with_deepspeed(self: Any) -> None:
        made(self)
        self.is_deepspeed_enabled = True

    monkeypatch.setattr(transformers.Trainer, made.__name__, with_deepspeed)
    with pytest.raises(ValueError, match="together with --deepspeed"):
        transformers.Trainer(model=llama(), args=arguments(tmp_path, fsdp=True))


@proves("fsdp-no-wrap")
@pytest.mark.usefixtures("with_fsdp")
def test_the_plugin_wraps_nothing_and_the_trainer_each_block(tmp_path: Path) -> None:
    """The FSDP plugin of accelerate wraps nothing by default; HF Trainer asks for each block."""
    assert accelerate.FullyShardedDataParallelPlugin().auto_wrap_policy is None
    made = transformers.Trainer(model=llama(), args=arguments(tmp_path, fsdp=True))
    policy = made.accelerator.state.fsdp_plugin.auto_wrap_policy
    assert "transformer_auto_wrap_policy" in str(policy)


@proves("fsdp-full-state-save")
def test_a_full_state_dict_is_gathered_in_the_ram_of_rank_0() -> None:
    """FULL_STATE_DICT means offload to the CPU on rank 0 only; SHARDED does not gather."""
    plugin = accelerate.FullyShardedDataParallelPlugin(fsdp_version=1)
    plugin.set_state_dict_type("FULL_STATE_DICT")
    assert plugin.state_dict_config.offload_to_cpu is True
    assert plugin.state_dict_config.rank0_only is True
    sharded = accelerate.FullyShardedDataParallelPlugin(
        fsdp_version=1, state_dict_type="SHARDED_STATE_DICT"
    )
    assert not hasattr(sharded.state_dict_config, "rank0_only")


def with_codes(storage: Any) -> Any:
    """Return a bf16 layer with a frozen parameter beside it, as a 4-bit weight is kept."""
    layer = nn.Linear(4, 4, dtype=torch.bfloat16)
    layer.codes = nn.Parameter(torch.zeros(8).to(storage), requires_grad=False)
    return layer


@proves("fsdp-qlora-quant-storage")
@pytest.mark.usefixtures("lone_world")
def test_fsdp1_refuses_integer_storage() -> None:
    """FSDP1 cannot flatten uint8 codes, alone or beside bf16 weights; bf16 storage it takes."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    device = torch.device("cpu")
    with pytest.raises(ValueError, match="uniform dtype"):
        FullyShardedDataParallel(with_codes(torch.uint8), device_id=device, use_orig_params=True)
    alone = nn.ParameterList([with_codes(torch.uint8).codes])
    with pytest.raises(ValueError, match="integer dtype"):
        FullyShardedDataParallel(alone, device_id=device, use_orig_params=True)
    FullyShardedDataParallel(with_codes(torch.bfloat16), device_id=device, use_orig_params=True)


@proves("fsdp-qlora-quant-storage")
@pytest.mark.usefixtures("lone_world")
def test_fsdp2_takes_frozen_integer_storage() -> None:
    """fully_shard accepts a frozen uint8 parameter beside bf16 ones, so the rule is for FSDP1."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    layer = with_codes(torch.uint8)
    fully_shard(layer, mesh=init_device_mesh("cpu", (1,)))
    assert layer.codes.to_local().dtype == torch.uint8


@proves("ddp-no-sharding-hint")
@pytest.mark.usefixtures("world_of_four")
def test_ddp_keeps_the_whole_model_and_fsdp_a_quarter() -> None:
    """On each of four ranks DDP holds all parameters, fully_shard holds a fourth."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    whole = nn.Linear(64, 64, bias=False)
    wrapped = nn.parallel.DistributedDataParallel(whole)
    assert sum(p.numel() for p in wrapped.parameters()) == 64 * 64
    split = nn.Linear(64, 64, bias=False)
    fully_shard(split, mesh=init_device_mesh("cpu", (4,)))
    assert sum(p.to_local().numel() for p in split.parameters()) == 64 * 64 // 4


@proves("ddp-extra")
@pytest.mark.usefixtures("lone_world")
@pytest.mark.parametrize("view", [False, True])
def test_ddp_buckets_are_as_large_as_the_trainable_gradients(*, view: bool) -> None:
    """Buckets sum to the gradients' bytes, and only gradient_as_bucket_view shares them."""
    layer = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False))
    layer[0].requires_grad_(requires_grad=False)
    wrapped = nn.parallel.DistributedDataParallel(layer, gradient_as_bucket_view=view)
    for _ in range(2):
        wrapped(torch.ones(1, 64)).sum().backward()
    sizes = wrapped._get_ddp_logging_data()["bucket_sizes"]
    assert sum(int(size) for size in sizes.split(",")) == 64 * 64 * 4
    assert bool(layer[1].weight.grad._is_view()) is view


@proves("ddp-extra")
@pytest.mark.usefixtures("lone_world")
def test_the_trainer_does_not_share_gradients_with_the_buckets(tmp_path: Path) -> None:
    """HF Trainer passes no gradient_as_bucket_view, so accelerate's default False holds."""
    made = transformers.Trainer(model=llama(), args=arguments(tmp_path), train_dataset=rows())
    assert made.accelerator.ddp_handler.gradient_as_bucket_view is False


def lora(model: Any) -> Any:
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM"))


@proves("reentrant-ddp-unused")
@pytest.mark.usefixtures("lone_world")
@pytest.mark.parametrize(
    ("reentrant", "find_unused", "with_lora", "fails"),
    [
        (True, None, True, True),
        (True, False, True, False),
        (False, None, True, False),
        (True, None, False, False),
        (True, True, False, True),
    ],
)
def test_reentrant_checkpointing_under_ddp_with_unused_search(
    *, reentrant: bool, find_unused: bool | None, with_lora: bool, fails: bool, tmp_path: Path
) -> None:
    """Reentrant checkpointing fails with find_unused, which a PeftModel gets by default."""
    made = transformers.Trainer(
        model=lora(llama()) if with_lora else llama(),
        args=arguments(
            tmp_path,
            max_steps=1,
            activation_checkpointing=True,
            activation_checkpointing_kwargs={"use_reentrant": reentrant},
            ddp_find_unused_parameters=find_unused,
        ),
        train_dataset=rows(),
    )
    if not fails:
        made.train()
        return
    with pytest.raises(RuntimeError, match="ready only once"):
        made.train()
