"""Ten training scripts allocate on a virtual card what they allocate on the real one of its name.

Each runs as it stands, in a process of its own on either card. The figures are written down
(comparing.py); what is reserved is among them and not judged.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.virtual.card import VirtualCard
from oomdoctor.worker.handlers import versions
from tests.conftest import ROOT
from tests.gpu.scripts import run_script, skip_without
from tests.gpu.test_scripts import SCRIPTS
from tests.gpu_real.comparing import Machine, Pair, write_down

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "fixtures" / "measured" / "virtual"
# GRPO samples its texts: without values their lengths differ, so that it is none of them
NAMES = (
    *("Trainer, all weights", "Trainer, LoRA", "TRL SFT", "TRL DPO", "Lightning"),
    *("GPT with torch.compile", "ViT", "ResNet", "diffusers, LoRA", "QLoRA"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_allocates_what_it_does_on_the_real_card(
    torch: Any, tmp_path: Path, name: str
) -> None:
    one = SCRIPTS[name]
    skip_without(*one.needs)
    device = torch.cuda.get_device_properties(0)
    played = VirtualCard(
        name=device.name,
        total_bytes=device.total_memory,
        capability=(device.major, device.minor),
        processors=device.multi_processor_count,
    )

    pair = Pair(
        script=" ".join((one.name, *one.arguments)),
        real=run_script(torch, tmp_path / "real", one.name, one.arguments),
        virtual=run_script(torch, tmp_path / "virtual", one.name, one.arguments, card=played),
    )
    write_down(FOLDER, machine_of(torch, device), pair)

    assert pair.faults() == []


def machine_of(torch: Any, device: Any) -> Machine:
    found = versions()
    return Machine(
        card=device.name,
        capability=(device.major, device.minor),
        processors=device.multi_processor_count,
        total_bytes=device.total_memory,
        torch=found.pop("torch"),
        cuda=str(torch.version.cuda),
        versions=found,
        day=datetime.now(timezone.utc).date(),
    )
