"""Real training under the recorder on the CPU: phases, steps, ranks, ends, and the same output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hang import no_hang
from tests.inject.running import needs
from tests.recorder.running import record, unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.recorder.told import Process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    needs("torch"),
]
PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang(600):
        yield


def program(name: str) -> str:
    return str(PROGRAMS / name)


def phases(process: Process) -> list[str]:
    return [one.name for one in process.phases]


def test_a_plain_loop_prints_the_same_and_tells_its_phases(tmp_path: Path) -> None:
    command = (sys.executable, program("loop.py"), str(tmp_path / "model.pt"))
    done = record(tmp_path, *command, options=("-q",))

    assert (done.code, done.output) == (0, unchanged(tmp_path, *command))
    process = done.run.working[0]
    assert process.steps[-1].number == 6
    assert phases(process) == ["load", "train step", "evaluation", "save"]
    assert process.exited
    assert done.told["outcome"] == "succeeded"
    assert done.run.samples[-1].processes
    report = (done.run.folder / "report.txt").read_text(encoding="utf-8")
    assert "Peaks by phase" in report
    assert "a longer row or a later phase may need more" in report


@needs("transformers", "accelerate")
def test_a_trainer_of_transformers_tells_its_steps_and_saves(tmp_path: Path) -> None:
    done = record(tmp_path, sys.executable, program("trainer.py"), str(tmp_path / "out"))

    assert done.code == 0
    assert done.output.endswith(b"trained\n")
    process = done.run.working[0]
    assert process.steps[-1].number == 4
    assert {"train step", "evaluation", "save"} <= set(phases(process))


@needs("lightning")
def test_a_trainer_of_lightning_tells_its_steps_and_saves(tmp_path: Path) -> None:
    done = record(tmp_path, sys.executable, program("lightning_loop.py"), str(tmp_path))

    assert done.code == 0
    assert done.output.endswith(b"trained 4\n")
    process = done.run.working[0]
    assert process.steps[-1].number == 4
    assert {"train step", "evaluation", "save"} <= set(phases(process))


def test_two_ranks_are_told_apart(tmp_path: Path) -> None:
    done = record(tmp_path, *TORCHRUN, program("ranks.py"))

    assert (done.code, done.output) == (0, b"step 1\nstep 2\nstep 3\nstep 4\n")
    assert [(one.rank, one.world, one.steps[-1].number) for one in done.run.working] == [
        (0, 2, 4),
        (1, 2, 4),
    ]
    seen = {one.get("rank") for sample in done.run.samples for one in sample.processes}
    assert {0, 1} <= seen


def test_a_rank_that_somebody_kills_did_not_run_out_of_memory(tmp_path: Path) -> None:
    done = record(tmp_path, *TORCHRUN, program("ranks.py"), "kill", "1")

    assert done.code == 1
    assert done.told["outcome"] in ("crashed", "killed")
    assert [one.rank for one in done.run.working if not one.exited and not one.errors] == [1]
    assert done.causes[:1] != ["host-ram-exhausted"]


def test_the_rank_that_runs_out_of_host_memory_is_named(tmp_path: Path) -> None:
    done = record(tmp_path, *TORCHRUN, program("ranks.py"), "fill", "1")

    assert done.code == 1
    assert done.told["outcome"] == "out-of-host-memory"
    assert "on rank 1" in done.told["why"]
    assert done.causes[0] in ("address-space-limit", "host-ram-exhausted")
