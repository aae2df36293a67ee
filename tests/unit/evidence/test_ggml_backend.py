from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_oom
from tests.unit.evidence.documents import document_of

REFUSED = (
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 7000.50 MiB on device 0:"
    " cudaMalloc failed: out of memory"
)


def backend_of(text: str) -> object:
    failure = torch_oom.read(document_of(text)).failures[0]
    return next(fact.value for fact in failure.facts if fact.key == "oom.backend")


@pytest.mark.parametrize(
    "line",
    [
        "ggml_cuda_init: found 1 ROCm devices:",
        "  Device 0: AMD Radeon RX 6800, gfx1030 (0x1030), VMM: no, Wave Size: 32",
        "load_tensors:        ROCm0 model buffer size =  4096.00 MiB",
    ],
)
def test_cuda_s_words_of_a_build_for_amd_are_hip_s(line: str) -> None:
    assert backend_of(f"{line}\n{REFUSED}") == "hip"


@pytest.mark.parametrize(
    "line", ["ggml_cuda_init: found 1 CUDA devices:", "chip: some host, membership"]
)
def test_other_builds_stay_with_cuda(line: str) -> None:
    assert backend_of(f"{line}\n{REFUSED}") == "cuda"
