"""A job that the worker runs on a device allocates what torch counts and our replay gives."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec, Job, LoraSpec
from tools.stream_jobs import tiny

JOBS = {
    "full": Job(model=tiny(), batch=2, seq_len=128),
    "lora": Job(
        model=tiny(), batch=2, seq_len=128, method="lora", lora=LoraSpec(targets=("q_proj",))
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_peaks_of_each_phase_are_those_that_torch_counted(torch: Any, name: str) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    if torch.cuda.memory_allocated():
        pytest.skip("an earlier test of this process left memory in use")
    record = importlib.import_module("oomdoctor.worker.history.recorder").record
    device = torch.cuda.get_device_properties(0)
    card = CardSpec(
        name=device.name,
        capability=(device.major, device.minor),
        processors=device.multi_processor_count,
        total_bytes=device.total_memory,
    )

    stream = record(JOBS[name], card, "")

    played = {
        one.name: {"allocated_bytes": one.allocated_bytes, "reserved_bytes": one.reserved_bytes}
        for one in replay(stream, capacity_bytes=card.total_bytes).phases
    }
    assert played == stream.facts["peaks"]
    assert list(played) == ["load", "step 1", "step 2"]
