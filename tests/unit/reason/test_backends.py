"""A measurement names the tools of the accelerator that failed."""

from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact
from oomdoctor.reason.backends import spelled


def book(backend: str | None) -> FactBook:
    facts = [] if backend is None else [Fact(key="oom.backend", value=backend)]
    return FactBook().add(facts)


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        (None, "nvidia-smi -L"),
        ("cuda", "nvidia-smi -L"),
        ("hip", "rocm-smi --showpids --showmeminfo vram"),
        ("npu", "npu-smi info"),
    ],
)
def test_the_device_tool_belongs_to_the_back_end(backend: str | None, expected: str) -> None:
    assert spelled("nvidia-smi -L", book(backend)) == expected


def test_a_mac_is_asked_for_what_torch_mps_has() -> None:
    asked = "Print torch.cuda.memory_summary() when it fails."

    assert spelled(asked, book("mps")) == "Print torch.mps.driver_allocated_memory() when it fails."


def test_intel_cards_have_a_summary_of_their_own() -> None:
    assert spelled("torch.cuda.memory_summary()", book("xpu")) == "torch.xpu.memory_summary()"
