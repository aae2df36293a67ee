"""Unmodified programs under trial: steps, ends, failures, and what they leave behind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.hang import no_hang
from tests.inject import programs
from tests.inject.running import MIB, needs, output_of, phase, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs("torch")]
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang(300):
        yield


def test_a_plain_loop_ends_after_its_steps_with_its_figures(tmp_path: Path) -> None:
    result = run(tmp_path, programs.LOOP, "8", "32", steps=3)

    assert result.outcome == "fit"
    assert result.exit_code == 0
    assert result.steps == 3
    assert output_of(result) == "step 0\nstep 1\n"  # the third ends inside its optimizer
    assert [one.name for one in result.phases] == ["load", "train step"]
    assert result.tokens_per_second is not None
    assert result.step_seconds == pytest.approx(8 * 32 / result.tokens_per_second)
    assert result.versions["torch"]


def test_what_a_trial_counts_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = (run(tmp_path, programs.LOOP, "8", "32", repeat=n) for n in (0, 1))

    assert first.allocated_bytes is not None
    assert first.allocated_bytes == second.allocated_bytes


def test_the_cap_is_exact_to_the_byte(tmp_path: Path) -> None:
    peak = run(tmp_path, programs.LOOP, "64", "32").allocated_bytes
    assert peak is not None

    at_the_peak = run(tmp_path, programs.LOOP, "64", "32", cap_bytes=peak)
    below = run(tmp_path, programs.LOOP, "64", "32", cap_bytes=peak - 1)

    assert at_the_peak.outcome == "fit"
    assert below.outcome == "oom"
    assert below.identity is not None
    assert below.identity.backend == "cpu"
    assert below.identity.exception == "OutOfMemoryError"
    assert below.requested_bytes
    assert "Tried to allocate" in output_of(below)


def test_a_request_far_above_the_cap_is_refused_and_not_made(tmp_path: Path) -> None:
    result = run(tmp_path, "import torch; torch.empty(1 << 40)", cap_bytes=MIB)

    assert result.outcome == "oom"
    assert result.requested_bytes == 4 << 40


def test_a_program_that_halves_its_batch_is_an_oom_and_that_is_said(tmp_path: Path) -> None:
    result = run(tmp_path, programs.HALVES, cap_bytes=20_000_000)

    assert result.outcome == "oom"
    assert "handled that and went on" in result.reason


def test_steps_are_those_of_optimizers_and_all_of_them_take_the_last(tmp_path: Path) -> None:
    result = run(tmp_path, programs.TWO_OPTIMIZERS, steps=2)

    assert result.outcome == "fit"
    lines = output_of(result).split("\n")[:-1]
    assert lines.count("micro") == 6
    assert lines.count("before 0") == lines.count("before 1") == 2


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_of_a_loader_neither_count_nor_stay(tmp_path: Path, how: str) -> None:
    result = run(tmp_path, programs.WORKERS, how, cap_bytes=MIB)

    assert result.outcome == "fit"
    assert result.ranks == 1
    assert output_of(result).count("step") == 1


def test_a_loop_is_followed_until_it_evaluates_and_saves(tmp_path: Path) -> None:
    result = run(tmp_path, programs.EVALUATES, evaluates=True, saves=True)

    assert result.outcome == "fit"
    assert result.reason == ""
    assert {"evaluation", "save"} <= {one.name for one in result.phases}
    assert output_of(result).count("evaluated") == 1
    assert (tmp_path / "model.pt").exists()


def test_what_a_loop_never_does_is_said(tmp_path: Path) -> None:
    result = run(tmp_path, programs.LOOP, "2", "8", evaluates=True)

    assert result.outcome == "fit"
    assert "not seen: evaluation" in result.reason


def test_without_a_number_of_steps_a_program_runs_to_its_own_end(tmp_path: Path) -> None:
    result = run(tmp_path, programs.LOOP, "2", "8", steps=0)

    assert result.outcome == "fit"
    assert result.steps == 50
    assert output_of(result).endswith("END\n")


@needs("transformers", "accelerate")
def test_a_trainer_evaluates_and_saves_once_when_asked(tmp_path: Path) -> None:
    result = run(tmp_path, programs.TRAINER, "--bs", "4", evaluates=True, saves=True)

    assert result.outcome == "fit"
    assert result.reason == ""
    assert result.steps == 2
    assert {"load", "train step", "evaluation", "save"} == {one.name for one in result.phases}
    assert (tmp_path / "out" / "checkpoint-2").is_dir()
    assert "END" not in output_of(result)


def test_ranks_of_torchrun_end_after_the_same_step(tmp_path: Path) -> None:
    result = run(tmp_path, programs.DDP, "10", launcher=TORCHRUN)

    assert result.outcome == "fit"
    assert result.ranks == 2
    assert result.steps == 2
    assert result.exit_code == 0
    assert "END" not in output_of(result)


def test_the_rank_that_runs_out_of_memory_is_named(tmp_path: Path) -> None:
    # weights, gradients, buckets and states need some 20 MB; activations 4 or 8 KB a row, twice
    fits = phase(run(tmp_path, programs.DDP, "1000", launcher=TORCHRUN), "train step")
    assert fits.allocated_bytes is not None

    result = run(
        tmp_path, programs.DDP, "1000", launcher=TORCHRUN, cap_bytes=fits.allocated_bytes - 1
    )

    assert result.outcome == "oom"
    assert result.rank == 1
    assert "on rank 1 of 2" in result.reason


@needs("transformers", "accelerate")
def test_a_program_of_accelerate_launch_is_followed(tmp_path: Path) -> None:
    launcher = (sys.executable, "-m", "accelerate.commands.launch", "--cpu")

    result = run(tmp_path, programs.TRAINER, launcher=(*launcher, "--num_processes", "1"))

    assert result.outcome == "fit"
    assert result.steps == 2
    assert result.exit_code == 0


@needs("deepspeed")
def test_steps_of_a_deepspeed_engine_are_its_updates(tmp_path: Path) -> None:
    launcher = (*TORCHRUN[:-1], "1")

    result = run(tmp_path, programs.DEEPSPEED, launcher=launcher, steps=3)

    assert result.outcome == "fit"
    assert result.steps == 3
    assert output_of(result).count("micro") == 6  # two a step, whatever the groups of weights
