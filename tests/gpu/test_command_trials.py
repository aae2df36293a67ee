"""Trials of unmodified programs on a card: what is measured, what fails, where the edge is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.search.axes import axis_named
from oomdoctor.search.edge import find_edge
from oomdoctor.search.rounds import Ask
from oomdoctor.search.rounds import run as search_through
from tests.inject import programs
from tests.inject.running import MIB, needs, output_of, phase, run

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.model.trial import TrialResult

LOOP = programs.LOOP.replace("\nmodel = ", "\ntorch.set_default_device('cuda')\nmodel = ")
# what a Trainer leaves in cycles goes when Python likes, and with it the edge; without the
# collector one run is like the other
TRAINER = "import gc; gc.disable()\n" + programs.TRAINER.replace("use_cpu=True, ", "").replace(
    "vocab_size=512", "vocab_size=32000"
)
CAP = 2048 * MIB


def test_a_program_is_measured_by_phase(tmp_path: Path, torch: Any) -> None:
    del torch

    result = run(tmp_path, LOOP, "64", "512", backend="cuda", steps=3)

    assert result.outcome == "fit"
    assert result.backend == "cuda"
    step = phase(result, "train step")
    assert step.allocated_bytes is not None
    assert step.reserved_bytes is not None
    assert step.device_bytes is not None
    assert 0 < step.allocated_bytes <= step.reserved_bytes <= step.device_bytes
    assert result.peak_bytes == step.reserved_bytes


def test_a_cap_is_the_allocators_own_and_its_refusal_is_seen(tmp_path: Path, torch: Any) -> None:
    del torch

    result = run(tmp_path, LOOP, "1024", "512", backend="cuda", cap_bytes=256 * MIB)

    assert result.outcome == "oom"
    assert result.identity is not None
    assert result.identity.backend == "cuda"
    assert result.identity.exception == "OutOfMemoryError"
    assert result.requested_bytes
    assert "CUDA out of memory. Tried to allocate" in output_of(result)
    assert result.reserved_bytes is not None
    assert result.reserved_bytes <= 256 * MIB


def test_a_program_that_halves_its_batch_is_an_oom(tmp_path: Path, torch: Any) -> None:
    del torch
    program = programs.HALVES.replace("import torch", "import torch; torch.set_default_device(0)")

    result = run(tmp_path, program, backend="cuda", cap_bytes=40 * MIB)

    assert result.outcome == "oom"
    assert "handled that and went on" in result.reason


@needs("transformers", "accelerate")
@pytest.mark.parametrize(("name", "step", "high"), [("batch", 1, 256), ("seq", 128, 4096)])
def test_a_trainer_is_bisected_as_it_stands(
    tmp_path: Path, torch: Any, name: str, step: int, high: int
) -> None:
    del torch
    fixed = {"seq": 512} if name == "batch" else {"batch": 2}

    def trial(ask: Ask) -> TrialResult:
        return run(
            tmp_path,
            TRAINER,
            "--bs={batch}",
            "--max_len={seq}",
            backend="cuda",
            values=ask.values,
            repeat=ask.repeat,
            cap_bytes=CAP,
        )

    axis = axis_named(name, step, high, step)
    answer = search_through(find_edge(axis, cap_bytes=CAP, fixed=dict(fixed)), trial)

    edge = answer.bracket.fits_at
    assert edge is not None
    assert answer.bracket.proven
    around = [int(edge) + step * more for more in (-1, 0, 1, 2)]
    outcomes = [trial(Ask(values={**fixed, name: one}, repeat=9)).outcome for one in around]
    assert outcomes == ["fit", "fit", "oom", "oom"]
