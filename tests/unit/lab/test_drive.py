"""A search is driven to the same answer whatever interrupts it, and never past its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import GuardError
from oomdoctor.lab.journal import JOURNAL, read_journal
from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.lab.timeouts import Timeouts
from oomdoctor.model.trial import CRASH, FIT, REFUSED, TrialResult, TrialSpec
from oomdoctor.record import replace
from oomdoctor.search.edge import find_edge
from tests.unit.lab.driving import BATCH, EDGE, ask, cap, driving, peak

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from oomdoctor.model.trial import SearchAnswer
    from oomdoctor.search.rounds import Search


class Interrupts(FormulaBackend):
    """Raises what it is given in the place of one trial."""

    def __init__(self, *, at: int = -1, error: BaseException | None = None, **more: Any) -> None:
        """Say when to raise what."""
        super().__init__(peak, cap_bytes=cap(), **more)
        self.at = at
        self.error = error

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        if len(self.trials) == self.at and self.error is not None:
            raise self.error
        return super().run(spec, hear)


def search() -> Search[SearchAnswer]:
    return find_edge(BATCH, cap_bytes=cap())


def test_a_search_is_driven_to_its_answer(tmp_path: Path) -> None:
    with driving(tmp_path) as (drive, quiet, journal):
        driven = drive.run(search())

    bracket = driven.answer.bracket
    assert (bracket.fits_at, bracket.ooms_at, bracket.proven) == (EDGE, EDGE + 1, True)
    assert len(journal.results) == len(quiet.ran) == len(driven.answer.trials)


def test_a_resumed_run_runs_nothing_twice(tmp_path: Path) -> None:
    with driving(tmp_path) as (drive, first, journal):
        expected = drive.run(search()).answer
    with driving(tmp_path, resume=journal.folder) as (drive, second, _):
        found = drive.run(search()).answer

    assert expected == found
    assert second.ran == []
    assert second.replayed == len(first.ran)


@pytest.mark.parametrize("at", range(5))
def test_an_interrupted_run_gives_its_best_and_is_resumed_where_it_was(
    tmp_path: Path, at: int
) -> None:
    with driving(tmp_path / "whole") as (drive, whole, _):
        expected = drive.run(search()).answer
    stopping = Interrupts(at=at, error=KeyboardInterrupt())
    with driving(tmp_path, stopping) as (drive, _, journal):
        cut = drive.run(search())
    with driving(tmp_path, resume=journal.folder) as (drive, rest, _):
        found = drive.run(search()).answer

    assert cut.interrupted
    assert cut.answer.stopped == "interrupted"
    assert len(cut.answer.trials) == at
    assert expected == found
    assert len(rest.ran) == len(whole.ran) - at


def test_a_refusal_keeps_its_reason_and_the_best_so_far(tmp_path: Path) -> None:
    stopping = Interrupts(at=2, error=GuardError("somebody came"))
    with driving(tmp_path, stopping) as (drive, _, _):
        driven = drive.run(search())

    assert driven.refused is stopping.error
    assert driven.answer.stopped == "somebody came"
    assert len(driven.answer.trials) == 2


def test_a_refused_trial_is_not_in_the_journal(tmp_path: Path) -> None:
    refusing = FormulaBackend(peak, cap_bytes=cap(), outcome=lambda _: REFUSED)
    with driving(tmp_path, refusing) as (drive, _, journal):
        driven = drive.run(search())

    assert driven.refused is not None
    assert read_journal(journal.folder / JOURNAL).results == {}


def test_a_budget_of_trials_is_not_exceeded(tmp_path: Path) -> None:
    with driving(tmp_path, trials=3) as (drive, quiet, _):
        driven = drive.run(search())

    assert len(quiet.ran) == 3
    assert driven.answer.stopped == "the budget of 3 trials is spent"
    assert not driven.interrupted


def test_what_is_replayed_costs_no_budget(tmp_path: Path) -> None:
    with driving(tmp_path, trials=3) as (drive, _, journal):
        drive.run(search())
    with driving(tmp_path, trials=1, resume=journal.folder) as (drive, quiet, _):
        drive.run(search())

    assert len(quiet.ran) == 1


def test_no_trial_starts_after_the_budget_of_seconds(tmp_path: Path) -> None:
    with driving(tmp_path, seconds=0) as (drive, quiet, _):
        driven = drive.run(search())

    assert quiet.ran == []
    assert driven.answer.stopped == "the budget of 0 seconds is spent"


class Killed(FormulaBackend):
    """Lets some trials end as one that was killed does, so many times each."""

    def __init__(self, times: int) -> None:
        """Say how often."""
        super().__init__(peak, cap_bytes=cap())
        self._left = times

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        result = super().run(spec, hear)
        if spec.values["batch"] != 1 or not self._left:
            return result
        self._left -= 1
        return replace(result, outcome=CRASH, killed=True)


@pytest.mark.parametrize(("times", "outcome"), [(1, FIT), (2, CRASH)])
def test_a_trial_that_somebody_killed_runs_once_more(
    tmp_path: Path, times: int, outcome: str
) -> None:
    def one() -> Search[str]:
        results = yield (ask(1),)
        return results[0].outcome

    with driving(tmp_path, Killed(times)) as (drive, quiet, _):
        found = drive.run(one()).answer

    assert len(quiet.ran) == 2
    assert outcome == found


def test_a_time_out_is_learned_from_the_longest_that_fitted() -> None:
    timeouts = Timeouts()
    one = TrialResult(key="", values={}, backend="cpu", outcome=FIT, seconds=0.1)
    found = [timeouts.seconds]
    for changes in ({}, {"seconds": 3.0}, {"seconds": 90.0, "outcome": CRASH}, {"seconds": 90.0}):
        timeouts.learn(replace(one, **changes))
        found.append(timeouts.seconds)

    assert found == [600.0, 5.0, 30.0, 30.0, 600.0]


class Slow(FormulaBackend):
    """Notes how long each trial may take."""

    def __init__(self) -> None:
        """Remember what was asked for."""
        super().__init__(peak, cap_bytes=cap())
        self.given: list[float | None] = []

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        self.given.append(spec.seconds)
        return super().run(spec, hear)


def one_trial() -> Search[str]:
    results = yield (ask(1),)
    return results[0].outcome


def test_a_trial_may_be_given_more_time_than_ten_minutes(tmp_path: Path) -> None:
    slow = Slow()

    with driving(tmp_path, slow, trial_seconds=3600.0) as (drive, _, _):
        outcome = drive.run(one_trial()).answer

    assert (outcome, slow.given) == (FIT, [3600.0])
