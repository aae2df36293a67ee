"""Bytes of optimizer states and of the step itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, llama, trainer
from tests.proofs.weighing import Peak, size

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

NUMBER = 256 * 256


def layers(dtype: Any = None, number: int = 4) -> Any:
    return torch.nn.Sequential(
        *(torch.nn.Linear(256, 256, bias=False, dtype=dtype) for _ in range(number))
    )


def stepped(model: Any, **given: Any) -> Any:
    """Return AdamW after one step on gradients of ones."""
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.AdamW(model.parameters(), **given)
    optimizer.step()
    return optimizer


def states(optimizer: Any) -> int:
    """Return the bytes of the moments."""
    found = [t for s in optimizer.state.values() for k, t in s.items() if k != "step"]
    return size(found)


@proves("full-ft-states-exceed-gpu", "v5-auto-dtype-full-ft-no-master", "optimizer-state-8bit")
@pytest.mark.parametrize(("dtype", "expected"), [(torch.float32, 8), (torch.bfloat16, 4)])
def test_adam_states_take_the_dtype_of_the_weight(dtype: Any, expected: int) -> None:
    """AdamW keeps 8 bytes per fp32 parameter and 4 per bf16 parameter."""
    assert states(stepped(layers(dtype))) == 4 * NUMBER * expected


@proves("full-ft-states-exceed-gpu")
@pytest.mark.parametrize(("dtype", "expected"), [(torch.float32, 16), (torch.bfloat16, 8)])
def test_weights_gradients_and_states_together(dtype: Any, expected: int) -> None:
    """Full training with AdamW holds 16 bytes per fp32 parameter, 8 per bf16 parameter."""
    model = layers(dtype)
    held = states(stepped(model))
    for parameter in model.parameters():
        held += size([parameter, parameter.grad])
    assert held == 4 * NUMBER * expected


@proves("adamw-foreach-temporaries")
@pytest.mark.parametrize(("how", "expected"), [("foreach", 4), ("fused", 0)])
def test_only_the_foreach_step_needs_room_for_all_parameters(how: str, expected: int) -> None:
    """A foreach AdamW step makes 4 bytes per fp32 parameter of temporaries, a fused step none."""
    model = layers(number=8)
    optimizer = stepped(model, **{how: True})
    with Peak() as peak:
        optimizer.step()
    assert expected == pytest.approx(peak.peak / (8 * NUMBER), abs=0.3)


@proves("adamw-foreach-temporaries")
def test_the_trainer_takes_the_fused_optimizer_unless_asked(tmp_path: Path) -> None:
    """Unless asked otherwise optim is adamw_torch_fused; adamw_torch leaves the choice to torch."""
    assert arguments(tmp_path).optim == "adamw_torch_fused"
    fused = trainer(tmp_path).create_optimizer()
    assert fused.defaults["fused"] is True
    plain = trainer(tmp_path, optim="adamw_torch").create_optimizer()
    assert not plain.defaults["fused"]


@proves("v5-auto-dtype-full-ft-no-master")
def test_small_updates_are_lost_in_bf16() -> None:
    """An update of 1/1024 of a weight changes an fp32 weight and leaves a bf16 weight as it is."""
    for dtype, moved in ((torch.float32, True), (torch.bfloat16, False)):
        weight = torch.ones(1, dtype=dtype)
        weight -= 1 / 1024
        assert bool(weight < 1) is moved


@proves("v5-auto-dtype-full-ft-no-master")
def test_the_checkpoint_decides_the_dtype(tmp_path: Path) -> None:
    """from_pretrained without dtype loads a bf16 checkpoint in bf16 (version 5), so AdamW too."""
    llama().to(torch.bfloat16).save_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert model.dtype == torch.bfloat16
    parameters = sum(p.numel() for p in model.parameters())
    assert states(stepped(model)) == 4 * parameters


@proves("optimizer-8bit-for-lora-pointless", "optimizer-state-8bit")
def test_states_are_kept_for_trainable_parameters_alone() -> None:
    """With LoRA AdamW keeps 8 bytes per adapter parameter and nothing for the base."""
    model = peft.get_peft_model(llama(), peft.LoraConfig(r=4, task_type="CAUSAL_LM"))
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    ids = torch.full((1, 4), 5)
    model(ids, labels=ids).loss.backward()
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    optimizer.step()
    assert states(optimizer) == 8 * trainable
    assert trainable * 20 < sum(p.numel() for p in model.parameters())


@proves("optimizer-state-8bit")
@pytest.mark.parametrize("optim", ["adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit"])
def test_the_trainer_keeps_embeddings_at_32_bit(optim: str, tmp_path: Path) -> None:
    """With an 8-bit optimizer of bitsandbytes the Trainer asks for 32-bit states of embeddings."""
    pytest.importorskip("bitsandbytes")
    import bitsandbytes

    made = trainer(tmp_path, optim=optim)
    made.create_optimizer()
    asked = bitsandbytes.optim.GlobalOptimManager.get_instance().module_weight_config_triple
    assert (made.model.model.embed_tokens, "weight", {"optim_bits": 32}) in asked


@proves("optimizer-state-8bit")
@pytest.mark.parametrize(("rows", "expected"), [(64, 2 + 8 / 256), (15, 8)])
def test_8_bit_states_are_two_bytes_for_large_tensors(rows: int, expected: float) -> None:
    """8-bit Adam of bitsandbytes keeps 2 + 8/256 bytes per parameter, 8 below 4096 values."""
    bitsandbytes = pytest.importorskip("bitsandbytes")
    weight = torch.nn.Parameter(torch.ones(rows, 256))
    optimizer = bitsandbytes.optim.AdamW8bit([weight])
    optimizer.init_state(optimizer.param_groups[0], weight, 0, 0)
    kept = optimizer.state[weight]
    names = [name for name in ("state1", "state2", "absmax1", "absmax2") if name in kept]
    assert size(kept[name] for name in names) / weight.numel() == pytest.approx(expected)
