"""Runs without a failure: nothing is found, nothing is named, and nobody is told that all is well.

An exception needs a reason and a date, here and nowhere else. There is none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.pipeline import diagnose
from oomdoctor.render.text import render

HEALTHY = Path(__file__).resolve().parents[2] / "fixtures" / "healthy"
FOLDERS = sorted(path for path in HEALTHY.iterdir() if path.is_dir())
DISCLAIMER = "this does not show that the run is healthy"
REASSURANCE = re.compile(
    r"\b(healthy|fine|ok|okay|all good|looks good|no (problem|issue|error)s?|nothing (is )?wrong"
    r"|everything|safe to|passed)\b",
    re.IGNORECASE,
)
FULL_CARD = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |
| 61%   67C    P2            391W /  450W |   24102MiB /  24564MiB |     99%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_found(folder: Path, ask_in: Any) -> None:
    said = ask_in(folder, _files(folder), [])

    assert said["answer"] == "nothing_found"
    assert [one["cause"] for one in said["causes"] if one["probability"] >= 0.5] == []
    assert said["prescriptions"] == []


def test_nobody_is_told_that_all_is_well(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text = render(diagnose(_files(folder)), width=200, colour=False, unicode=True)
    one_line = " ".join(text.split())

    assert DISCLAIMER in one_line
    assert REASSURANCE.search(one_line.replace(DISCLAIMER, "")) is None


def test_a_full_card_is_a_sign(tmp_path: Path, ask_in: Any) -> None:
    (tmp_path / "nvidia-smi.txt").write_text(FULL_CARD)

    said = ask_in(tmp_path, ["nvidia-smi.txt"], [])

    assert said["answer"] == "need_evidence"
    assert any("24102MiB" in sign["text"] for sign in said["signs"])


def test_the_corpus_has_seventy_runs_or_more() -> None:
    assert len(FOLDERS) >= 70
