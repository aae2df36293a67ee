from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oomdoctor.worker.errors import ShimFailedError
from oomdoctor.worker.fake.shim import check_slots, method_slots

ROOT = Path(__file__).resolve().parents[3]
HEADER = """
struct Hooks {
  // virtual void notThis() = 0;
  virtual ~Hooks() = default;
  /* virtual bool nor(this) */
  virtual bool isBuilt() const { return false; }
  virtual bool isAvailable() const = 0;
  virtual bool hasPrimaryContext(DeviceIndex device_index) const = 0;
};
"""


def test_the_places_of_methods_are_counted_after_the_two_of_the_destructor() -> None:
    assert method_slots(HEADER) == {"isBuilt": 2, "isAvailable": 3, "hasPrimaryContext": 4}


def test_a_header_without_the_methods_is_refused_by_name() -> None:
    with pytest.raises(ShimFailedError, match="declares no hasPrimaryContext"):
        check_slots({"isBuilt": 2})


def test_the_self_test_passes_in_a_process_of_its_own() -> None:
    pytest.importorskip("torch")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=False, timeout=120
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_the_number_of_a_stream_is_not_asked_of_a_driver_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    from oomdoctor.worker.fake.card import FakeCard
    from oomdoctor.worker.fake.trace import shim
    from tests.worker.fake.cards import A100

    def refuse(_device: int) -> int:
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", refuse, raising=False)

    with FakeCard(A100, shim()):
        answer = torch._C._cuda_getCurrentRawStream(0)

    assert answer == 0
    assert torch._C._cuda_getCurrentRawStream is refuse


def test_a_process_that_traced_ends_by_itself_with_tensors_still_on_the_card() -> None:
    pytest.importorskip("torch")
    program = (
        "import torch\n"
        "from oomdoctor.worker.fake.trace import trace_run\n"
        "from tests.worker.fake.cards import A100\n"
        "kept = []\n"
        "def run(device, _):\n"
        "    weight = torch.ones(4, device=device, requires_grad=True)\n"
        "    (weight * 2).sum().backward()\n"
        "    kept.append((weight, weight.grad))\n"
        "trace_run(run, A100)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=120, cwd=ROOT
    )

    assert (done.returncode, done.stderr) == (0, b"")


PROGRAM = "import os; from oomdoctor.worker.fake.selftest import attempt; os._exit(attempt())"
