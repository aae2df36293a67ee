from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import torch_oom
from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

GIB = 1 << 30
MIB = 1 << 20
EXPECTED: list[dict[str, Value]] = [
    {
        "oom.library": "cupy",
        "oom.requested": 2 * GIB,
        "torch.allocated": 5 * GIB,
        "oom.allowed": 6 * GIB,
    },
    {"oom.library": "cupy", "oom.requested": 512 * MIB},
    {
        "oom.library": "paddle",
        "oom.requested": round(1.25 * GIB),
        "torch.allocated": round(22.5 * GIB),
        "oom.free": round(812.5 * MIB),
        "oom.gpu_index": 1,
    },
    {
        "oom.library": "paddle",
        "oom.requested": round(145.5 * MIB),
        "oom.free": round(72.25 * MIB),
    },
    {"oom.library": "paddle", "oom.requested": 9663676416, "oom.free": GIB},
    {"oom.library": "rmm", "oom.backend": "cuda"},
    {"oom.library": "rmm", "oom.backend": "cuda"},
    {"oom.library": "directml", "oom.requested": 671088640},
    {"oom.library": "opencv", "oom.backend": "cuda"},
    {
        "oom.library": "arrayfire",
        "oom.requested": round(1.5 * GIB),
        "oom.capacity": round(11.91 * GIB),
        "torch.allocated": round(9.5 * GIB),
    },
    {"oom.library": "tenstorrent", "oom.requested": 204800000},
    {"oom.library": "numba", "oom.backend": "cuda"},
    {"oom.library": "mxnet", "oom.backend": "cuda"},
    {"oom.library": "cann", "oom.backend": "npu", "oom.requested": 1610678272},
    {"oom.library": "cuda-jl", "oom.requested": round(1.5 * GIB)},
    {"oom.library": "cann", "oom.backend": "npu"},
    {"oom.library": "cann", "oom.backend": "npu"},
    {"oom.library": "cann", "oom.backend": "npu", "oom.requested": round(1.5 * GIB)},
    {"oom.library": "cann", "oom.backend": "npu", "oom.requested": 768 * MIB},
    {"oom.requested": 32 * MIB, "oom.free": 12 * MIB},
    {"oom.requested": 2 * GIB, "oom.gpu_index": 2},
    {"oom.backend": "hip", "oom.free": 96 * MIB},
    {"oom.requested": 6 * GIB, "torch.allocated": round(11.5 * GIB)},
    {"oom.backend": "mps", "oom.requested": 16 * GIB},
    {"oom.library": "xla", "oom.requested": 8 * GIB},
    {"oom.library": "xla", "oom.requested": 4 * GIB},
    {"oom.library": "xla", "oom.requested": 6 * GIB},
    {
        "oom.backend": "other",
        "oom.requested": round(1.5 * GIB),
        "oom.gpu_index": 3,
        "oom.capacity": round(46.9 * GIB),
        "torch.allocated": 44 * GIB,
        "oom.free": 900 * MIB,
        "oom.generation": None,
    },
]
LINES = raw_text("backends", "library_messages.txt").splitlines()


@pytest.mark.parametrize(("line", "expected"), list(zip(LINES, EXPECTED, strict=True)))
def test_a_library_s_message_is_one_failure_with_its_figures(
    line: str, expected: dict[str, Value]
) -> None:
    failures = torch_oom.read(document_of(line)).failures

    assert [failure.kind for failure in failures] == ["gpu-oom"]
    facts = {fact.key: fact.value for fact in failures[0].facts}
    assert {key: facts.get(key) for key in expected} == expected


def test_a_notebook_s_heading_does_not_hide_that_the_card_ran_out() -> None:
    text = (
        "-----------------------------------------------------------\n"
        "MemoryError                       Traceback (most recent call last)\n"
        "----> 1 frame = cudf.read_csv('rows.csv')\n\n"
        "MemoryError: std::bad_alloc: CUDA error at: ../rmm/cuda_memory_resource.hpp70:"
        " cudaErrorMemoryAllocation out of memory"
    )

    assert [failure.kind for failure in read_all(document_of(text)).failures] == ["gpu-oom"]


def test_a_node_in_a_layout_of_the_cpu_ran_out_of_main_memory() -> None:
    text = (
        "Non-zero status code returned while running Conv node. Name:'12{}' Status Message:"
        " bfc_arena.cc:330 Failed to allocate memory for requested buffer of size 80000000"
    )

    kinds = [
        [failure.kind for failure in read_all(document_of(text.format(layout))).failures]
        for layout in ("_nchwc", "")
    ]

    assert kinds == [["host-oom"], ["gpu-oom"]]
