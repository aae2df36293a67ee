"""Places side by side: as one place, only faster, and a refusal in one ends all."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import GuardError
from oomdoctor.lab.executors import SideBySide
from oomdoctor.lab.guard import Guard, Wish
from oomdoctor.lab.places import Place
from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import REFUSED, TrialResult, TrialSpec
from oomdoctor.record import replace
from oomdoctor.search.frontier import find_frontier
from tests.unit.lab.driving import BATCH, SEQ, ask, cap, driving, peak, place, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from oomdoctor.search.rounds import Search


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
