"""Training scripts as people write them need on a card what their shapes say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.record import dataclass
from tests.gpu import bounds
from tests.gpu.scripts import run_script, skip_without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.gpu.scripts import Ran

HF = ("transformers", "accelerate")
SLACK = 1.3  # blocks that are free but of other sizes than what is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script with the sizes that it is given, what of it is live at least and at most, its ranks.

    `sizes` are words of its command line, and the arguments of its bound.
    """

    name: str
    bound: Callable[..., bounds.Bound]
    sizes: Mapping[str, int]
    needs: tuple[str, ...] = HF
    more: tuple[str, ...] = ()
    ranks: int = 1

    @property
    def limits(self) -> bounds.Bound:
        return self.bound(*self.sizes.values())

    def run(self, torch: Any, folder: Path, card_bytes: int) -> Ran:
        """Run it on cards of so many bytes; skip where something is not installed."""
        skip_without(*self.needs)
        sizes = [word for name, one in self.sizes.items() for word in (f"--{name}", str(one))]
        return run_script(
            torch, folder, self.name, (*sizes, *self.more), ranks=self.ranks, card_bytes=card_bytes
        )


def shape(batch: int, length: int) -> dict[str, int]:
    return {"batch": batch, "length": length}


SCRIPTS = {
    "Trainer, all weights": Script(
        name="trainer_full.py", bound=bounds.trainer_full, sizes=shape(8, 512)
    ),
    "Trainer, LoRA": Script(
        name="trainer_lora.py",
        bound=bounds.trainer_lora,
        sizes=shape(8, 1024),
        needs=(*HF, "peft"),
    ),
    "TRL SFT": Script(
        name="trl_sft.py", bound=bounds.trl_sft, sizes=shape(8, 512), needs=(*HF, "trl")
    ),
    "TRL DPO": Script(
        name="trl_dpo.py", bound=bounds.trl_dpo, sizes=shape(4, 512), needs=(*HF, "trl")
    ),
    "TRL GRPO": Script(
        name="trl_grpo.py", bound=bounds.trl_grpo, sizes=shape(8, 128), needs=(*HF, "trl")
    ),
    "accelerate": Script(name="accelerate_loop.py", bound=bounds.trainer_full, sizes=shape(8, 512)),
    "Lightning": Script(
        name="lightning_fit.py",
        bound=bounds.lightning_fit,
        sizes=shape(8, 512),
        needs=("transformers", "lightning"),
    ),
    "GPT with torch.compile": Script(
        name="nanogpt.py", bound=bounds.nanogpt, sizes=shape(8, 512), needs=()
    ),
    "ViT": Script(name="vit.py", bound=bounds.vit, sizes={"batch": 32}, needs=("timm",)),
    "ResNet": Script(
        name="resnet.py", bound=bounds.resnet, sizes={"batch": 32}, needs=("torchvision",)
    ),
    "diffusers, LoRA": Script(
        name="diffusers_lora.py",
        bound=bounds.diffusers_lora,
        sizes={"batch": 8, "size": 64},
        needs=("diffusers", "peft"),
    ),
    "QLoRA": Script(
        name="qlora.py",
        bound=bounds.qlora,
        sizes=shape(16, 1024),
        needs=(*HF, "peft", "bitsandbytes"),
    ),
    "DeepSpeed ZeRO-2": Script(
        name="deepspeed_zero.py",
        bound=bounds.zero2,
        sizes=shape(4, 512),
        needs=("transformers", "deepspeed"),
        more=("--stage", "2"),
        ranks=4,
    ),
    "DeepSpeed ZeRO-3": Script(
        name="deepspeed_zero.py",
        bound=bounds.zero3,
        sizes=shape(4, 512),
        needs=("transformers", "deepspeed"),
        more=("--stage", "3"),
        ranks=4,
    ),
    "FSDP2": Script(
        name="fsdp2.py", bound=bounds.fsdp2, sizes=shape(4, 512), needs=("transformers",), ranks=4
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fits_where_its_upper_bound_does(torch: Any, tmp_path: Path, name: str) -> None:
    low, high = SCRIPTS[name].limits
    card = int(high * SLACK)

    ran = SCRIPTS[name].run(torch, tmp_path / "run", card)

    assert ran.outcome == "fit", ran.output
    assert low <= ran.allocated_bytes <= high
    assert ran.allocated_bytes <= ran.reserved_bytes <= card


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fails_where_its_lower_bound_does_not_fit(
    torch: Any, tmp_path: Path, name: str
) -> None:
    card = SCRIPTS[name].limits[0]

    ran = SCRIPTS[name].run(torch, tmp_path / "run", card)

    assert ran.outcome == "oom", ran.output
    assert "CUDA out of memory. Tried to allocate" in ran.output
    assert ran.reserved_bytes <= card
