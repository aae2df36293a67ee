"""The edge that a bisection finds for a script is that of trying every value."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.cli.bisect_command import CommandTemplate
from oomdoctor.lab.command_trial import CommandBackend
from oomdoctor.model.trial import FIT, OOM, TrialSpec
from oomdoctor.record import dataclass, replace
from oomdoctor.search.axes import axis_named
from oomdoctor.search.edge import find_edge
from oomdoctor.search.rounds import run
from tests.gpu import bounds
from tests.gpu.scripts import FOLDER, skip_without

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from oomdoctor.model.trial import TrialResult, Value
    from oomdoctor.search.rounds import Ask

BATCH, LENGTH = 4, 1024
QUICK = "nanogpt.py"
AXES = {"batch": (1, 8, 1), "seq": (256, 2048, 256)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script whose rows and tokens can be chosen, and what it needs."""

    bound: Callable[[int, int], bounds.Bound]
    needs: tuple[str, ...] = ("transformers", "accelerate")
    arguments: tuple[str, ...] = ()


SCRIPTS = {
    "nanogpt.py": Script(bound=bounds.nanogpt, needs=(), arguments=("--eager",)),
    "trainer_full.py": Script(bound=bounds.trainer_full),
    "trainer_lora.py": Script(
        bound=bounds.trainer_lora, needs=("transformers", "accelerate", "peft")
    ),
    "accelerate_loop.py": Script(bound=bounds.trainer_full),
    "lightning_fit.py": Script(bound=bounds.lightning_fit, needs=("transformers", "lightning")),
    "trl_sft.py": Script(bound=bounds.trl_sft, needs=("transformers", "accelerate", "trl")),
}


class Trials:
    """Runs a script at values of the axes, each repeat once."""

    def __init__(self, name: str, folder: Path, cap_bytes: int) -> None:
        """Know nothing yet."""
        words = (sys.executable, str(FOLDER / name), "--batch={batch}", "--length={seq}")
        self.template = CommandTemplate((*words, *SCRIPTS[name].arguments), (), str(folder))
        self.backend = CommandBackend("cuda", folder=folder / "run")
        self.cap_bytes = cap_bytes

    def __call__(self, ask: Ask) -> TrialResult:
        return self.at(dict(ask.values), repeat=ask.repeat)

    def at(self, values: dict[str, Value], *, repeat: int) -> TrialResult:
        environment = {
            # with several cards `Trainer` would take all of them, which TRL refuses
            "CUDA_VISIBLE_DEVICES": "0",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "0",
        }
        command = replace(self.template.at(values), environment=environment)
        spec = TrialSpec(
            values=values, command=command, cap_bytes=self.cap_bytes, seconds=600.0, repeat=repeat
        )
        return self.backend.run(spec, lambda _: None)


def threshold_and_scan(name: str, axis_name: str, folder: Path) -> tuple[Any, list[str], list[int]]:
    low, high, step = AXES[axis_name]
    fixed: dict[str, Value] = {"seq": LENGTH} if axis_name == "batch" else {"batch": BATCH}
    cap = SCRIPTS[name].bound(BATCH, LENGTH)[1]
    trials = Trials(name, folder, cap)
    axis = axis_named(axis_name, low=low, high=high, step=step)

    bracket = run(find_edge(axis, cap_bytes=cap, fixed=dict(fixed)), trials).bracket
    values = list(range(low, high + 1, step))
    outcomes = [trials.at({**fixed, axis_name: one}, repeat=9).outcome for one in values]
    return bracket, outcomes, values


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one == QUICK else pytest.mark.slow) for one in SCRIPTS],
)
def test_the_threshold_of_a_script_is_that_of_a_scan(
    torch: Any, tmp_path: Path, name: str, axis: str
) -> None:
    del torch
    skip_without(*SCRIPTS[name].needs)

    bracket, outcomes, values = threshold_and_scan(name, axis, tmp_path)

    fits = outcomes.count(FIT)
    assert 0 < fits < len(values), outcomes
    assert outcomes == [FIT] * fits + [OOM] * (len(values) - fits)
    assert bracket.proven
    assert (bracket.fits_at, bracket.ooms_at) == (values[fits - 1], values[fits])
