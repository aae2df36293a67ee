"""Of many micro-steps those are run that differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from oomdoctor.worker.run.training import _micro_steps


@pytest.mark.parametrize(
    ("count", "run", "told"), [(1, [0], 0), (2, [0, 1], 0), (3, [0, 1, 2], 0), (64, [0, 1, 63], 1)]
)
def test_the_first_two_micro_steps_and_the_last_are_run(
    count: int, run: list[int], told: int
) -> None:
    said: list[str] = []
    bench: Any = SimpleNamespace(
        job=SimpleNamespace(grad_accum=count), observer=SimpleNamespace(assume=said.append)
    )

    assert run == _micro_steps(bench)
    assert told == len(said)
