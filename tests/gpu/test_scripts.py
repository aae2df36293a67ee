"""Training scripts as people write them need on a card what their shapes say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.record import dataclass
from tests.gpu import bounds
from tests.gpu.scripts import run_script, skip_without

if TYPE_CHECKING:
    from pathlib import Path

HF = ("transformers", "accelerate")
SLACK = 1.3  # blocks that are free but of other sizes than what is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script, what it is given, how many ranks it has, and what it needs at least and at most."""

    name: str
    bound: bounds.Bound
    needs: tuple[str, ...] = HF
    arguments: tuple[str, ...] = ()
    ranks: int = 1


def shape(batch: int, length: int) -> tuple[str, ...]:
    return ("--batch", str(batch), "--length", str(length))


SCRIPTS = {
    "Trainer, all weights": Script(
        name="trainer_full.py", bound=bounds.trainer_full(8, 512), arguments=shape(8, 512)
    ),
    "Trainer, LoRA": Script(
        name="trainer_lora.py",
        bound=bounds.trainer_lora(8, 1024),
        needs=(*HF, "peft"),
        arguments=shape(8, 1024),
    ),
    "TRL SFT": Script(
        name="trl_sft.py",
        bound=bounds.trl_sft(8, 512),
        needs=(*HF, "trl"),
        arguments=shape(8, 512),
    ),
    "TRL DPO": Script(
        name="trl_dpo.py",
        bound=bounds.trl_dpo(4, 512),
        needs=(*HF, "trl"),
        arguments=shape(4, 512),
    ),
    "TRL GRPO": Script(
        name="trl_grpo.py",
        bound=bounds.trl_grpo(8, 128),
        needs=(*HF, "trl"),
        arguments=shape(8, 128),
    ),
    "accelerate": Script(
        name="accelerate_loop.py", bound=bounds.trainer_full(8, 512), arguments=shape(8, 512)
    ),
    "Lightning": Script(
        name="lightning_fit.py",
        bound=bounds.lightning_fit(8, 512),
        needs=("transformers", "lightning"),
        arguments=shape(8, 512),
    ),
    "GPT with torch.compile": Script(
        name="nanogpt.py", bound=bounds.nanogpt(8, 512), needs=(), arguments=shape(8, 512)
    ),
    "ViT": Script(
        name="vit.py", bound=bounds.vit(32), needs=("timm",), arguments=("--batch", "32")
    ),
    "ResNet": Script(
        name="resnet.py",
        bound=bounds.resnet(32),
        needs=("torchvision",),
        arguments=("--batch", "32"),
    ),
    "diffusers, LoRA": Script(
        name="diffusers_lora.py",
        bound=bounds.diffusers_lora(8, 64),
        needs=("diffusers", "peft"),
        arguments=("--batch", "8", "--size", "64"),
    ),
    "QLoRA": Script(
        name="qlora.py",
        bound=bounds.qlora(16, 1024),
        needs=(*HF, "peft", "bitsandbytes"),
        arguments=shape(16, 1024),
    ),
    "DeepSpeed ZeRO-2": Script(
        name="deepspeed_zero.py",
        bound=bounds.zero2(4, 512),
        needs=("transformers", "deepspeed"),
        arguments=(*shape(4, 512), "--stage", "2"),
        ranks=4,
    ),
    "DeepSpeed ZeRO-3": Script(
        name="deepspeed_zero.py",
        bound=bounds.zero3(4, 512),
        needs=("transformers", "deepspeed"),
        arguments=(*shape(4, 512), "--stage", "3"),
        ranks=4,
    ),
    "FSDP2": Script(
        name="fsdp2.py",
        bound=bounds.fsdp2(4, 512),
        needs=("transformers",),
        arguments=shape(4, 512),
        ranks=4,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fits_where_its_upper_bound_does(torch: Any, tmp_path: Path, name: str) -> None:
    one = SCRIPTS[name]
    skip_without(*one.needs)
    low, high = one.bound
    card = int(high * SLACK)

    ran = run_script(
        torch, tmp_path / "run", one.name, one.arguments, ranks=one.ranks, card_bytes=card
    )

    assert ran.outcome == "fit", ran.output
    assert low <= ran.allocated_bytes <= high
    assert ran.allocated_bytes <= ran.reserved_bytes <= card


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fails_where_its_lower_bound_does_not_fit(
    torch: Any, tmp_path: Path, name: str
) -> None:
    one = SCRIPTS[name]
    skip_without(*one.needs)
    card = one.bound[0]

    ran = run_script(
        torch, tmp_path / "run", one.name, one.arguments, ranks=one.ranks, card_bytes=card
    )

    assert ran.outcome == "oom", ran.output
    assert "CUDA out of memory. Tried to allocate" in ran.output
    assert ran.reserved_bytes <= card
