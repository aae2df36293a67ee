"""Readers of tables on damaged input: they never raise, and their figures stay possible."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hang import no_hang
from tests.unit.evidence.documents import RAW, document_of

READERS = (
    "torch_summary",
    "torch_stats",
    "nvidia_smi",
    "nvidia_smi_query",
    "nvidia_smi_full",
    "nvidia_smi_list",
    "nvidia_smi_xml",
    "rocm_smi",
    "gpustat",
    "nvitop",
    "npu_smi",
    "fuser",
    "packages",
    "environment",
    "vllm_log",
    "host_tables",
    "host_use",
    "host_processes",
    "host_signs",
    "kernel_kill",
    "job_accounts",
    "containers",
    "trials",
    "data_sizes",
)
FOLDERS = (
    "memory_summary",
    "nvidia_smi",
    "packages",
    "environment",
    "device_tools",
    "serving",
    "host",
)
LINES = tuple(
    line
    for folder in FOLDERS
    for path in sorted((RAW / folder).iterdir())
    for line in path.read_text(encoding="utf-8").splitlines()
)
MAY_BE_NEGATIVE = ("serve.kv_cache", "host.victim_adjustment", "host.kill_order")


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Lines of all fixtures in any order, each cut at both ends, some glued together."""
    chosen = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=30))
    out = []
    for line in chosen:
        begin = draw(st.integers(0, 3)) * draw(st.integers(0, len(line) // 3))
        end = len(line) - draw(st.integers(0, 2)) * draw(st.integers(0, len(line) // 3))
        out.append(line[begin:end])
    return draw(st.sampled_from(["\n", "\n", "\n", " ", "|"])).join(out)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None)
@given(text=damaged())
def test_damaged_tables_never_raise_and_give_possible_figures(name: str, text: str) -> None:
    reading = import_module(f"oomdoctor.evidence.{name}").read(document_of(text))

    said = {fact.key: fact.value for fact in reading.facts}
    numbers = {
        key: value
        for key, value in said.items()
        if not isinstance(value, (str, bool)) and key not in MAY_BE_NEGATIVE
    }
    assert [key for key, value in numbers.items() if value < 0] == []
    total = said.get("gpu.mig_slice", said.get("gpu.total"))
    if name.startswith(("nvidia", "rocm", "gpustat", "nvitop", "npu")) and "gpu.used" in said:
        assert total is None or said["gpu.used"] <= total  # type: ignore[operator] - bytes
    assert 0 <= said.get("gpu.used_share", 0) <= 1  # type: ignore[operator] - a share


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "| " * 30_000,
        "1" * 60_000 + " MiB / 5 MiB |",
        "A=" * 30_000 + " PYTORCH_CUDA_ALLOC_CONF=x",
        "torch " * 9_000 + "1.0",
        "<" * 30_000 + "fb_memory_usage>" * 2_000,
        "\n".join(["|   0  Tesla T4   Off | 00000000:00:04.0 Off | 0 |"] * 3_000),
        "\n".join(["A=1 " * 120 + "PYTORCH_CUDA_ALLOC_CONF"] * 500),
        "\n".join(["[   4411]  1000  4411  9111222  2097152 18874368 0 0 python3"] * 3_000)
        + "\nOut of memory: Killed process 1 (python3) total-vm:1kB, anon-rss:1kB",
        "Killed process 1 (" + "(" * 30_000 + " total-vm: invoked oom-killer: gfp_mask=",
    ],
    ids=[
        *("bars", "digits", "assignments", "names", "brackets", "many-rows", "many-assignments"),
        *("many-tasks", "parentheses"),
    ],
)
def test_hostile_lines_do_not_hang(name: str, text: str) -> None:
    with no_hang():
        reading = import_module(f"oomdoctor.evidence.{name}").read(document_of(text))

    assert not any(fact.value == "" for fact in reading.facts)
