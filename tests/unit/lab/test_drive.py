"""A search is driven to the same answer whatever interrupts it, and never past its budget."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import GuardError
from oomdoctor.lab.drive import Budget, Drive
from oomdoctor.lab.executors import OneByOne, SideBySide
from oomdoctor.lab.guard import Guard, Wish
from oomdoctor.lab.journal import JOURNAL, Journal, read_journal
from oomdoctor.lab.places import Place
from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.lab.timeouts import Timeouts
from oomdoctor.model.trial import CRASH, FIT, REFUSED, TrialResult, TrialSpec
from oomdoctor.record import replace
from oomdoctor.search.axes import Axis
from oomdoctor.search.edge import find_edge
from oomdoctor.search.frontier import find_frontier
from oomdoctor.search.rounds import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from oomdoctor.lab.executors import Executor
    from oomdoctor.model.trial import SearchAnswer, Value
    from oomdoctor.search.rounds import Search

GIB = 1 << 30
BATCH = Axis(name="batch", low=1, high=512)
SEQ = Axis(name="seq", low=512, high=4096, step=512)
EDGE = 37


def peak(values: Mapping[str, Value]) -> float:
    length = int(values.get("seq", 1024)) / 1024
    return 2 * GIB + 0.5 * GIB * int(values["batch"]) * length


def cap() -> int:
    return int(peak({"batch": EDGE}))


class Quiet:
    """Hears all and shows nothing."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self.ran: list[Mapping[str, Value]] = []
        self.replayed = 0

    def began(self, spec: TrialSpec) -> None:
        self.ran.append(spec.values)

    def heard(self, spec: TrialSpec, text: str) -> None:
        pass

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        self.replayed += replayed
        self.last = result


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


def place(backend: Any = None) -> Place:
    made = backend or FormulaBackend(peak, cap_bytes=cap())
    return Place(Guard(Wish(backend="formula")), lambda _stop, _environment: made)


def spec_of(ask: Ask) -> TrialSpec:
    return TrialSpec(values=ask.values, repeat=ask.repeat)


@contextmanager
def driving(
    folder: Path, *backends: Any, resume: Path | None = None, **budget: Any
) -> Iterator[tuple[Drive, Quiet, Journal]]:
    quiet = Quiet()
    with ExitStack() as stack:
        places = [place(one) for one in backends or (None,)]
        for one in places:
            stack.enter_context(one.opened())
        executor: Executor = OneByOne(places[0]) if len(places) == 1 else SideBySide(places)
        journal = (
            Journal.create(folder, "ab" * 32, arguments=["oomdoctor"], started=0.0)
            if resume is None
            else Journal.resume(resume)
        )
        stack.callback(journal.close)
        yield (
            Drive(executor, journal, spec_of=spec_of, tells=quiet, budget=Budget(**budget)),
            quiet,
            journal,
        )


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


def test_places_side_by_side_give_the_same_frontier(tmp_path: Path) -> None:
    def rows(*backends: Any) -> list[tuple[float, float | None]]:
        wanted = find_frontier(SEQ, BATCH, cap_bytes=cap(), width=max(len(backends), 1))
        folder = tmp_path / str(len(backends))
        with driving(folder, *backends) as (drive, _, _):
            frontier = drive.run(wanted).answer
        return [(at, answer.bracket.fits_at) for at, answer in frontier.rows]

    assert rows() == rows(*(FormulaBackend(peak, cap_bytes=cap()) for _ in range(3)))


class Waits(FormulaBackend):
    """Ends only once another place runs a trial as well."""

    def __init__(self, both: threading.Barrier) -> None:
        """Share what both wait for."""
        super().__init__(peak, cap_bytes=cap())
        self._both = both

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        self._both.wait(30)
        return super().run(spec, hear)


def test_places_run_at_the_same_time(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    def two() -> Search[int]:
        first = yield (ask(1), ask(2))
        return len(first)

    with driving(tmp_path, Waits(both), Waits(both)) as (drive, _, _):
        assert drive.run(two()).answer == 2


def ask(batch: int) -> Ask:
    return Ask(values={"batch": batch})


def test_a_refusal_in_one_place_ends_the_others_with_its_reason() -> None:
    began = threading.Event()

    class Stoppable(FormulaBackend):
        stop: Callable[[], str | None]

        def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
            began.set()
            while self.stop() is None:
                threading.Event().wait(0.01)
            return replace(super().run(spec, hear), outcome=REFUSED, reason=str(self.stop()))

    class Refuses(FormulaBackend):
        def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
            began.wait(30)
            super().run(spec, hear)
            raise GuardError("memory shrank")

    def two() -> Search[int]:
        yield (ask(1), ask(2))
        return 0

    waits = Stoppable(peak)

    def make(stop: Callable[[], str | None], _: Mapping[str, str]) -> Stoppable:
        waits.stop = stop
        return waits

    places = [place(Refuses(peak)), Place(Guard(Wish(backend="formula")), make)]
    with ExitStack() as stack:
        for one in places:
            stack.enter_context(one.opened())
        with pytest.raises(GuardError, match="memory shrank"):
            SideBySide(places).run([spec_of(ask(1)), spec_of(ask(2))], _Hears())


class _Hears:
    def began(self, spec: TrialSpec) -> None:
        pass

    def heard(self, spec: TrialSpec, text: str) -> None:
        pass

    def ended(self, result: TrialResult) -> None:
        pass


def test_a_time_out_is_learned_from_the_longest_that_fitted() -> None:
    timeouts = Timeouts()
    one = TrialResult(key="", values={}, backend="cpu", outcome=FIT, seconds=0.1)
    found = [timeouts.seconds]
    for changes in ({}, {"seconds": 3.0}, {"seconds": 90.0, "outcome": CRASH}, {"seconds": 90.0}):
        timeouts.learn(replace(one, **changes))
        found.append(timeouts.seconds)

    assert found == [600.0, 5.0, 30.0, 30.0, 600.0]
