from __future__ import annotations

import subprocess
import sys

import pytest

from oomdoctor.worker.errors import ShimFailedError
from oomdoctor.worker.fake.shim import check_slots, method_slots

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


PROGRAM = "import os; from oomdoctor.worker.fake.selftest import attempt; os._exit(attempt())"
