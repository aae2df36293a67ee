from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import (
    amd_smi,
    environment,
    gpustat,
    npu_smi,
    nvidia_smi,
    nvidia_smi_query,
    nvidia_smi_xml,
    nvitop,
    rocm_smi,
    xpu_smi,
)
from tests.unit.evidence.tables_documents import MIB, read_raw, read_text, values

if TYPE_CHECKING:
    from types import ModuleType

    from oomdoctor.model.core import Value

EXPECTED: list[tuple[ModuleType, str, dict[str, Value]]] = [
    (
        amd_smi,
        "amd_smi_table.txt",
        {
            "gpu.name": "AMD Instinct MI300X",
            "gpu.total": 196592 * MIB,
            "gpu.used": 190112 * MIB,
            "gpu.count": 2,
            "gpu.programs": "python3",
            "gpu.largest_row": round(184.5 * 1024) * MIB,
        },
    ),
    (
        amd_smi,
        "amd_smi_monitor.txt",
        {"gpu.total": 65520 * MIB, "gpu.used": 64100 * MIB, "gpu.free": 1420 * MIB, "gpu.count": 2},
    ),
    (
        amd_smi,
        "amd_smi_metric.txt",
        {
            "gpu.total": 65520 * MIB,
            "gpu.used": 64100 * MIB,
            "gpu.free": 1420 * MIB,
            "gpu.programs": "python3",
            "gpu.largest_row": 62 << 30,
        },
    ),
    (amd_smi, "amd_smi.json", {"gpu.total": 65520 * MIB, "gpu.used": 64100 * MIB}),
    (
        rocm_smi,
        "rocm.csv",
        {"gpu.total": 21458059264, "gpu.used": 20958059264, "gpu.count": 2},
    ),
    (rocm_smi, "rocm_showmemuse.txt", {"gpu.used_share": 0.96, "gpu.imbalance": 0.96}),
    (rocm_smi, "rocm_concise_6.txt", {"gpu.used_share": 0.93, "gpu.imbalance": 0.92}),
    (
        xpu_smi,
        "xpu_smi.txt",
        {
            "gpu.name": "Intel(R) Arc(TM) A770 Graphics",
            "gpu.total": 16288 * MIB,
            "gpu.used": 15890 * MIB,
            "gpu.programs": "python",
            "gpu.process_rows": 1,
            "gpu.largest_row": 15981212 << 10,
        },
    ),
    (
        gpustat,
        "gpustat_unknown.txt",
        {"gpu.name": "NVIDIA RTX A6000", "gpu.used": 48000 * MIB, "gpu.process_rows": None},
    ),
    (
        nvitop,
        "nvitop_wddm.txt",
        {"gpu.name": "GeForce RTX 4080", "gpu.process_rows": 1, "gpu.largest_row": None},
    ),
    (
        npu_smi,
        "npu_smi_two_chips.txt",
        {"gpu.name": "Ascend 910", "gpu.used": 61000 * MIB, "gpu.count": 2},
    ),
]


@pytest.mark.parametrize(
    ("reader", "file", "expected"), EXPECTED, ids=[file for _, file, _ in EXPECTED]
)
def test_a_tool_s_output_gives_the_fullest_card(
    reader: ModuleType, file: str, expected: dict[str, Value]
) -> None:
    said = values(read_raw(reader, "device_tools", file))

    assert {key: said.get(key) for key in expected} == expected


def test_an_idle_amd_card_says_that_nothing_runs() -> None:
    text = (
        "| AMD-SMI 26.0.0      amdgpu version: 6.14.14  ROCm version: 7.0.0    |\n"
        "|   0       0       3        SPX/NPS1 | 0 %        N/A            283/196592 MB |\n"
        "|  No running processes found                                                  |\n"
    )

    assert values(read_text(amd_smi, text))["gpu.process_table_empty"] is True


def test_the_log_of_an_mps_server_gives_the_limit_per_client() -> None:
    said = values(read_raw(environment, "device_tools", "mps_control.txt"))

    assert (said["mps.client_limit"], said["mps.client_limit_bytes"]) == (True, 8188 * MIB)


def test_a_topology_is_no_table_of_cards() -> None:
    assert values(read_raw(nvidia_smi, "device_tools", "nvidia_topo.txt")) == {}


def test_figures_without_permission_are_absent() -> None:
    text = (
        "index, memory.used [MiB], memory.total [MiB]\n"
        "0, [Insufficient Permissions], [Insufficient Permissions]\n"
        "1, [N/A], 40960 MiB\n"
    )

    assert "gpu.used" not in values(read_text(nvidia_smi_query, text))


@pytest.mark.parametrize(
    ("file", "total", "used", "free"),
    [
        ("log_v10.xml", 22919, 21019, 1900),
        ("log_v11_reserved.xml", 46068, 41000, 4460),
        ("log_v13.xml", 143771, 140000, 3071),
    ],
)
def test_reserved_memory_is_neither_used_nor_free(
    file: str, total: int, used: int, free: int
) -> None:
    said = values(read_raw(nvidia_smi_xml, "nvidia_smi", file))

    figures = (said["gpu.total"], said["gpu.used"], said["gpu.free"])
    assert figures == (total * MIB, used * MIB, free * MIB)
