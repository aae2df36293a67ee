"""Each trial on virtual cards has a machine of its own, and says what was taken for granted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.model.job import CardSpec
from oomdoctor.model.trial import FIT, TrialResult, TrialSpec
from oomdoctor.record import replace
from oomdoctor.virtual.outside import CONTEXT_BYTES, context_words
from oomdoctor.virtual.session import Played
from oomdoctor.virtual.trials import Machine, VirtualTrials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GIB = 1 << 30
CARD = CardSpec(name="NVIDIA L4", capability=(8, 9), processors=58, total_bytes=22 * GIB)
SPEC = TrialSpec(values={"batch": 1})


class Inner:
    """What runs the trials: it only looks at its environment, and logs what it is told to."""

    name = "virtual"
    seen: list[Mapping[str, str]]

    def __init__(self, environment: Mapping[str, str], logs: str = "") -> None:
        """Keep the environment."""
        self.environment = environment
        self.logs = logs

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Log, and fit."""
        hear("ran")
        Path(self.environment["OOMDOCTOR_VIRTUAL_LOG"]).write_text(self.logs)
        assert Path(self.environment["OOMDOCTOR_VIRTUAL_SCRATCH"]).is_dir()
        assumed = ("its own",)
        return TrialResult(
            key="k", values=spec.values, backend=self.name, outcome=FIT, assumptions=assumed
        )


def trials(tmp_path: Path, *, times: int = 1, logs: str = "") -> tuple[VirtualTrials, list[Inner]]:
    made: list[Inner] = []

    def make(environment: Mapping[str, str]) -> Inner:
        made.append(Inner(environment, logs))
        return made[-1]

    machine = Machine(CARD, times, "python", Played(tmp_path, (2, 13)))
    return VirtualTrials(machine, make), made


def environment_of(tmp_path: Path, spec: TrialSpec, times: int = 1) -> Mapping[str, str]:
    backend, made = trials(tmp_path, times=times)
    backend.run(spec, lambda _: None)
    return made[0].environment


def test_a_trial_is_on_the_cards_with_the_context_of_a_process(tmp_path: Path) -> None:
    found = environment_of(tmp_path, SPEC, times=2)

    assert found["OOMDOCTOR_VIRTUAL_NAME"] == "NVIDIA L4"
    assert found["OOMDOCTOR_VIRTUAL_COUNT"] == "2"
    assert found["OOMDOCTOR_VIRTUAL_CONTEXT_BYTES"] == str(CONTEXT_BYTES)


def test_a_trial_that_names_a_card_gets_it(tmp_path: Path) -> None:
    larger = replace(CARD, total_bytes=1 << 50)

    found = environment_of(tmp_path, replace(SPEC, card=larger))

    assert found["OOMDOCTOR_VIRTUAL_TOTAL_BYTES"] == str(1 << 50)


def test_no_two_trials_share_a_log_or_a_folder_for_checkpoints(tmp_path: Path) -> None:
    backend, made = trials(tmp_path)

    for _ in range(2):
        backend.run(SPEC, lambda _: None)

    for name in ("LOG", "USAGE", "SCRATCH"):
        first, second = (one.environment[f"OOMDOCTOR_VIRTUAL_{name}"] for one in made)
        assert first != second
        assert not Path(first).exists(), "nothing is left behind"


def test_what_nobody_models_is_an_assumption_of_the_result(tmp_path: Path) -> None:
    backend, _ = trials(tmp_path, logs="refused cudaOne\nread 7 2 train.py:3 in main\n")

    result = backend.run(SPEC, lambda _: None)

    assert result.assumptions[:2] == ("its own", context_words(CONTEXT_BYTES))
    assert "calls that failed since nobody models them: cudaOne" in result.assumptions
    assert "train.py:3 in main" in result.assumptions[-1]


def test_where_a_trial_is_reaches_the_listener(tmp_path: Path) -> None:
    heard: list[str] = []
    backend, _ = trials(tmp_path)

    backend.run(SPEC, heard.append)

    assert heard == ["ran"]
