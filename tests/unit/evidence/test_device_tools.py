from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import fuser, gpustat, npu_smi, nvitop, rocm_smi
from oomdoctor.facts.table_gpu import ROWS
from tests.unit.evidence.tables_documents import GIB, MIB, fact_of, read_raw, read_text, values

if TYPE_CHECKING:
    from types import ModuleType

    from oomdoctor.model.core import Value

EXPECTED = [
    (
        rocm_smi,
        "rocm_meminfo.txt",
        {
            "gpu.name": "AMD Instinct MI210",
            "gpu.total": 68702699520,
            "gpu.used": 66571993088,
            "gpu.count": 2,
            "gpu.imbalance": 0.9688,
            "gpu.process_rows": 1,
            "gpu.programs": "python3",
            "gpu.largest_row": 66500000000,
        },
    ),
    (rocm_smi, "rocm.json", {"gpu.total": 17163091968, "gpu.used": 17000000000, "gpu.count": 1}),
    (rocm_smi, "rocm_concise.txt", {"gpu.used_share": 0.97, "gpu.imbalance": 0.95}),
    (
        gpustat,
        "gpustat.txt",
        {
            "gpu.name": "NVIDIA GeForce RTX 3090",
            "gpu.used": 24101 * MIB,
            "gpu.total": 24576 * MIB,
            "gpu.count": 2,
            "gpu.programs": "anna\npython\ngdm",
            "gpu.largest_row": 23000 * MIB,
        },
    ),
    (
        nvitop,
        "nvitop.txt",
        {
            "gpu.name": "A100-SXM4-80GB",
            "gpu.total": 80 * GIB,
            "gpu.count": 2,
            "gpu.compute_mode": "default",
            "gpu.programs": "python3 train.py",
            "gpu.process_rows": 1,
        },
    ),
    (
        npu_smi,
        "npu_smi.txt",
        {
            "gpu.name": "Ascend 910B2",
            "gpu.used": 60419 * MIB,
            "gpu.total": 65536 * MIB,
            "gpu.count": 2,
            "gpu.programs": "python3.10",
            "gpu.process_table_empty": False,
        },
    ),
    (fuser, "fuser.txt", {"gpu.device_holders": 2, "gpu.holder_programs": "python3\npython3"}),
]


@pytest.mark.parametrize(
    ("reader", "file", "expected"), EXPECTED, ids=[file for _, file, _ in EXPECTED]
)
def test_a_tool_s_output_gives_its_facts(
    reader: ModuleType, file: str, expected: dict[str, Value]
) -> None:
    said = values(read_raw(reader, "device_tools", file))

    assert expected == {key: said.get(key) for key in expected}


def test_hundredths_of_gibibytes_have_their_rounding() -> None:
    used = fact_of(read_raw(nvitop, "device_tools", "nvitop.txt"), "gpu.used")

    assert abs(used.value - 77.98 * GIB) <= used.slack <= 0.006 * GIB  # type: ignore[operator] - a number


def test_an_idle_rocm_card_says_that_nothing_runs() -> None:
    text = "KFD process information:\nNo KFD PIDs currently running\n"

    assert values(read_text(rocm_smi, text))["gpu.process_table_empty"] is True


def test_daemons_do_not_hold_a_device() -> None:
    text = "/dev/nvidia0:        root       1210 F.... nvidia-persiste\n"

    assert values(read_text(fuser, text)) == {}


def test_lsof_names_holders_too() -> None:
    text = "python3 21452 anna  mem    CHR  195,0          500 /dev/nvidia0"

    assert values(read_text(fuser, text))["gpu.device_holders"] == 1


def test_an_unknown_figure_of_gpustat_gives_no_card() -> None:
    assert values(read_text(gpustat, "[0] Tesla K80 | 45'C, ?? % | ?? / 11441 MB | ")) == {}


def test_gpu_rows_of_the_registry_are_unique() -> None:
    keys = [row.key for row in ROWS]

    assert sorted(set(keys)) == sorted(keys)
