"""One run at a time on a device, and what the host still gives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import GuardError
from oomdoctor.lab.lock import locked
from oomdoctor.probe.host import memory
from tests.unit.lab.stub_smi import UUID

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def test_a_device_has_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        locked([UUID], folder=tmp_path),
        pytest.raises(GuardError, match=f"process {os.getpid()}"),
        locked([UUID], folder=tmp_path),
    ):
        pass

    with locked([UUID], folder=tmp_path):  # given back at the end
        pass


def test_a_lock_that_cannot_be_written_is_held_all_the_same(tmp_path: Path) -> None:
    with locked([UUID], folder=tmp_path):
        next(tmp_path.glob("*.lock")).chmod(0o444)

    with (
        locked([UUID], folder=tmp_path),
        pytest.raises(GuardError),
        locked(["GPU-other", UUID], folder=tmp_path),
    ):
        pass


def test_a_link_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"oomdoctor-{UUID}.lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(GuardError, match="cannot be locked"), locked([UUID], folder=tmp_path):
        pass


def test_the_tightest_limit_of_the_groups_above_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/jobs/mine\n")
    inner = tmp_path / "jobs" / "mine"
    inner.mkdir(parents=True)
    (tmp_path / "jobs" / "memory.max").write_text(f"{300 * MIB}\n")
    (tmp_path / "jobs" / "memory.current").write_text(f"{100 * MIB}\n")
    (tmp_path / "jobs" / "memory.stat").write_text(f"anon 5\ninactive_file {40 * MIB}\n")
    (inner / "memory.max").write_text("max\n")

    found = memory(tmp_path, own)

    assert (found.total_bytes, found.available_bytes) == (300 * MIB, 240 * MIB)
