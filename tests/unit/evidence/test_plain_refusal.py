"""Refused memory in words no reader knows is told; advice, tests and other allocations are not."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.plain_refusal import refusals
from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of

HOST = [
    "RuntimeError: Could not allocate memory for the array",
    "gridlib.OutOfMemoryException: could not allocate block of size 128.0 KiB",
    "Error: 'code' failed: Memory allocation failed",
    "boostlib.basic.BoostError: bad allocation",
    "RuntimeError: mmap error: errno=12",
    "LLVM ERROR: out of memory",
]
OPEN = [
    "UserError: out of memory",
    "ResourceExhaustedError: Graph execution error:",
    "boxlib.DeviceOutOfMemory: cannot place a buffer of 1048576 bytes",
    "ValueError: not enough memory to load the weights",
    "device: NVIDIA T4\nRuntimeError: could not allocate 4.0 GB",
    "Using torch_npu 2.1\nRuntimeError: could not allocate 4.0 GB",
    "backend: level_zero (xpu)\nRuntimeError: memory allocation failed",
    "MemoryError: Error allocating 1048576 bytes of device memory (out of memory).",
    "hccl: HcclAllocComResource\nError: Failed to allocate memory.",
]
SILENT = [
    "ImportError: cannot allocate memory in static TLS block",
    "RuntimeError: cannot allocate 8 GPUs",
    "If you run out of memory, lower the batch size.",
    "tests/test_a.py::test_retry[OutOfMemoryError:] PASSED",
    "WARNING: memory allocation failed, trying a smaller block",
    "allocated 12 GB of memory",
    "ValueError: out of memory\nstep 12/100 loss 2.3\nstep 13/100 loss 2.2",
]


@pytest.mark.parametrize("text", HOST)
def test_a_refused_allocation_without_a_device_is_main_memory(text: str) -> None:
    failures = read_all(document_of(text)).failures

    assert [failure.kind for failure in failures] == ["host-oom"]


@pytest.mark.parametrize("text", OPEN)
def test_bare_words_leave_open_which_memory_it_was(text: str) -> None:
    failures = read_all(document_of(text)).failures

    assert [failure.kind for failure in failures] == ["gpu-oom"]


@pytest.mark.parametrize("text", SILENT)
def test_advice_tests_and_survived_refusals_are_no_failure(text: str) -> None:
    assert list(refusals(document_of(text))) == []


def test_the_refused_size_is_read() -> None:
    text = "LoadError: failed to allocate memory of size 2 GiB for a buffer"

    facts = {one.key: one.value for failure in refusals(document_of(text)) for one in failure.facts}

    assert facts["host.requested"] == 2 * 2**30
