"""A share of the card that a tool or script grants a process, however it is written."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config
from oomdoctor.evidence import environment
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text


def shares(text: str) -> list[object]:
    facts = [fact for reading in read_config(text, name="notes") for fact in reading.facts]
    return [fact.value for fact in facts if fact.key == "alloc.fraction"]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Plugin options\nGPU memory share for each worker: 0.25", 0.25),
        ("GPU memory fraction per process = 40%", 0.4),
        ("vram limit 50 %", 0.5),
        ("opts = tf.GPUOptions(per_process_gpu_memory_fraction=0.333)", 0.333),
        ("torch.cuda.set_per_process_memory_fraction(0.5, 0)", 0.5),
        ("gpu_memory_limit: 0.6", 0.6),
        ("mem_fraction: 0.8", 0.8),
        ("CUDA_MEMORY_FRACTION=0.5 launch-server", 0.5),
        ("text-generation-launcher --model-id x --cuda-memory-fraction 0.7", 0.7),
    ],
)
def test_a_share_is_read_from_settings_notes_and_commands(text: str, share: float) -> None:
    assert shares(text) == [pytest.approx(share)]


@pytest.mark.parametrize(
    "text",
    [
        "gpu_memory_limit: 8192",
        "vram limit 4 GB",
        "GPU memory share 120 %",
        "gpu_memory_utilization: 0.9",
        "host memory share: 0.5",
    ],
)
def test_sizes_and_other_shares_are_no_share_of_the_allocator(text: str) -> None:
    assert shares(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "gpu memory share per worker: 0.2",
        "GPUOptions(per_process_gpu_memory_fraction=0.2)",
        "Args { cuda_memory_fraction: 0.2 }",
        "torch.cuda.set_per_process_memory_fraction(fraction=0.2)",
    ],
)
def test_a_share_is_read_from_a_log(text: str) -> None:
    facts = environment.read(clean(source_of_text(text + "\n"))).facts
    assert [fact.value for fact in facts if fact.key == "alloc.fraction"] == [0.2]
