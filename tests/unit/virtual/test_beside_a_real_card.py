"""Figures of both cards are compared and written down; the cards themselves are not needed."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from oomdoctor.record import replace
from tests.gpu.scripts import Ran
from tests.gpu_real.comparing import MOST_OFF, Machine, Pair, write_down

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
MACHINE = Machine(
    card="NVIDIA H100 80GB HBM3",
    capability=(9, 0),
    processors=132,
    total_bytes=85_029_158_912,
    torch="2.13.0+cu130",
    cuda="13.0",
    versions={"transformers": "5.24.0", "peft": "0.21.2"},
    day=date(2026, 12, 1),
)


def ran(allocated: int, *, outcome: str = "fit", output: str = "") -> Ran:
    return Ran(
        outcome=outcome, allocated_bytes=allocated, reserved_bytes=2 * allocated, output=output
    )


def pair(real: Ran, virtual: Ran, script: str = "vit.py --batch 32") -> Pair:
    return Pair(script=script, real=real, virtual=virtual)


def read(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return values


@pytest.mark.parametrize("virtual", [GIB, int(GIB * (1 + MOST_OFF)), int(GIB * (1 - MOST_OFF)) + 1])
def test_peaks_within_a_thousandth_are_equal(virtual: int) -> None:
    assert pair(ran(GIB), ran(virtual)).faults() == []


@pytest.mark.parametrize(("virtual", "said"), [(GIB + (GIB >> 9), "+0.20%"), (GIB // 2, "-50.00%")])
def test_peaks_farther_apart_are_told_with_both_figures(virtual: int, said: str) -> None:
    (fault,) = pair(ran(GIB), ran(virtual)).faults()

    assert fault.startswith("vit.py --batch 32: 1,073,741,824 bytes are allocated on the real card")
    assert f"{virtual:,} on the virtual one ({said})" in fault


@pytest.mark.parametrize("side", ["real", "virtual"])
def test_a_script_that_ends_otherwise_is_told_with_what_it_said(side: str) -> None:
    failed = ran(0, outcome="crash", output="no kernel image")
    sides = (failed, ran(GIB)) if side == "real" else (ran(GIB), failed)

    (fault,) = pair(*sides).faults()

    assert fault == f"vit.py --batch 32 on the {side} card ended as crash:\nno kernel image"


def test_two_runs_that_counted_nothing_are_not_equal() -> None:
    assert len(pair(ran(0), ran(0)).faults()) == 2


def test_figures_are_written_with_the_card_the_versions_and_the_day(tmp_path: Path) -> None:
    path = write_down(tmp_path / "virtual", MACHINE, pair(ran(GIB), ran(GIB + 1024)))

    assert path.name == "nvidia-h100-80gb-hbm3-torch-2.13.0-cu130.yaml"
    assert read(path) == {
        "schema": 1,
        "card": "NVIDIA H100 80GB HBM3",
        "capability": "9.0",
        "processors": 132,
        "total_bytes": 85_029_158_912,
        "torch": "2.13.0+cu130",
        "cuda": "13.0",
        "versions": {"peft": "0.21.2", "transformers": "5.24.0"},
        "scripts": {
            "vit.py --batch 32": {
                "date": "2026-12-01",
                "real": {"outcome": "fit", "allocated_bytes": GIB, "reserved_bytes": 2 * GIB},
                "virtual": {
                    "outcome": "fit",
                    "allocated_bytes": GIB + 1024,
                    "reserved_bytes": 2 * GIB + 2048,
                },
                "allocated_off": 1e-06,
            }
        },
    }


def test_a_later_run_replaces_its_own_figures_alone(tmp_path: Path) -> None:
    write_down(tmp_path, MACHINE, pair(ran(GIB), ran(GIB), "resnet.py"))
    write_down(tmp_path, MACHINE, pair(ran(GIB), ran(GIB)))
    later = replace(MACHINE, day=date(2026, 12, 24))

    path = write_down(tmp_path, later, pair(ran(2 * GIB), ran(2 * GIB)))

    scripts = read(path)["scripts"]
    assert {name: one["date"] for name, one in scripts.items()} == {
        "resnet.py": "2026-12-01",
        "vit.py --batch 32": "2026-12-24",
    }
    assert scripts["vit.py --batch 32"]["real"]["allocated_bytes"] == 2 * GIB


def test_figures_of_other_versions_have_a_file_of_their_own(tmp_path: Path) -> None:
    first = write_down(tmp_path, MACHINE, pair(ran(GIB), ran(GIB)))
    other = write_down(tmp_path, replace(MACHINE, torch="2.12.1"), pair(ran(GIB), ran(GIB)))

    assert first != other
    assert first.exists()
