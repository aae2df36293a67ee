"""The virtual engine, over doubles of the worker on a virtual card and of the simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.estimating import virtual_sessions
from oomdoctor.estimating.choice import Engines
from oomdoctor.estimating.engine import NotSimulatedError
from oomdoctor.estimating.estimate import Wanted, estimate
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.estimating.virtual import NO_CARD, SAME, Virtual, usual_card
from oomdoctor.lab.session import WorkerError
from oomdoctor.memory.stream import Allocation
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec
from oomdoctor.record import replace
from oomdoctor.render.estimate_page import estimate_page
from tests.unit.estimating.doubles import GIB, Double, a_card, a_job, stream_of

if TYPE_CHECKING:
    from oomdoctor.lab.protocol import RecordRequest
    from oomdoctor.memory.stream import Stream

SMALL, LARGE = a_card(24 * GIB, "small"), a_card(80 * GIB, "large")


def without_names(stream: Stream) -> Stream:
    plain = [one._replace(operator="", module="", category="") for one in stream.allocations]
    return replace(stream, allocations=tuple(plain))


class Sessions(Double):
    """A worker that records what the simulation says, without its names.

    torch counts what the replay comes to and `off` more.
    """

    def __init__(
        self,
        *,
        off: int = 0,
        extra: int = 0,
        log: str = "",
        fails: WorkerError | None = None,
        breaks: WorkerError | None = None,
        ends_late: bool = False,
    ) -> None:
        """Record; `extra` bytes are allocated that no simulation knows.

        `breaks` is raised, with `ends_late` only where the card has its own size.
        """
        super().__init__(fails=fails)
        self.versions = {"torch": "2.13.0"}
        self.records: list[RecordRequest] = []
        self.off, self.extra, self.log, self.breaks = off, extra, log, breaks
        self.ends_late = ends_late

    def record(self, request: RecordRequest) -> Stream:
        self.records.append(request)
        if self.breaks is not None and (request.is_own_size or not self.ends_late):
            raise self.breaks
        stream = without_names(stream_of(request.job))
        if self.extra:
            more = Allocation(self.extra, "", "", "load", "")
            shifted = [one + 1 if one >= 0 else one - 1 for one in stream.events]
            stream = replace(
                stream,
                allocations=(more, *stream.allocations),
                events=(0, *shifted),
                marks=(stream.marks[0], *(one._replace(at=one.at + 1) for one in stream.marks[1:])),
            )
        played = replay(stream, settings=request.settings)
        peaks = {
            one.name: {
                "allocated_bytes": one.allocated_bytes + self.off,
                "reserved_bytes": (one.reserved_bytes or 0) + self.off,
            }
            for one in played.phases
        }
        return replace(stream, facts={"peaks": peaks, "log": self.log})


def test_a_run_says_what_a_simulation_of_the_same_allocations_says() -> None:
    wanted = Wanted(cards=(SMALL,), with_limits=False)

    ran = estimate(a_job(), Virtual(Sessions(), SMALL), wanted)
    simulated = estimate(a_job(), Simulation(Double(), SMALL), wanted)

    assert ran.engine == "virtual"
    assert ran.origin == "run on a virtual small by the CUDA build of torch 2.13.0"
    assert ran.peak_allocated_bytes == simulated.peak_allocated_bytes
    assert (ran.parts, ran.owners, ran.line) == (simulated.parts, simulated.owners, simulated.line)
    assert ran.verdicts == simulated.verdicts
    count = len(stream_of(a_job()).allocations)
    assert ran.told[0].startswith(f"a simulation of the job makes the same {count:,} allocations")
    assert SAME in ran.told


def test_figures_are_those_that_torch_counted_and_a_difference_to_the_replay_is_said() -> None:
    plain = Virtual(Sessions(), SMALL).peak(a_job())

    made = Virtual(Sessions(off=3 << 20), SMALL).peak(a_job())

    assert made.allocated == plain.allocated + (3 << 20)
    assert made.reserved == (plain.reserved or 0) + (3 << 20)
    assert [one.allocated_bytes for one in made.phases] == [
        one.allocated_bytes + (3 << 20) for one in plain.phases
    ]
    assert (made.parts, made.owners) == ((), ())  # they would add up to the replay's peak
    assert any("cards are judged by the replay" in one for one in made.told)
    assert SAME not in made.told


def test_a_few_allocations_that_no_simulation_knows_leave_the_others_their_names() -> None:
    made = Virtual(Sessions(extra=4096), SMALL).peak(a_job())

    assert made.owners
    assert any("of the peak, 4.00 KiB has no name" in one for one in made.told)


def test_where_no_simulation_makes_the_same_nothing_is_said_of_who_holds_what() -> None:
    made = Virtual(Sessions(extra=2 * GIB), SMALL).peak(a_job())

    assert (made.parts, made.categories, made.owners) == ((), (), ())
    assert any(one.startswith("who holds what is not known: only") for one in made.told)


def test_a_job_that_cannot_be_simulated_is_run_all_the_same() -> None:
    sessions = Sessions(fails=WorkerError("unsupported", "no fake card\nmore"))

    made = Virtual(sessions, SMALL).peak(a_job())

    assert made.allocated > GIB
    assert made.owners == ()
    assert any("no simulation names it (no fake card)" in one for one in made.told)


def test_other_batches_follow_the_laws_of_the_simulation() -> None:
    sessions = Sessions()
    engine = Virtual(sessions, SMALL)

    made = estimate(a_job(), engine, Wanted(cards=(SMALL,), with_table=True, batches=(1, 2, 4)))

    # the job, and the cell that checks the table
    assert [one.job.batch for one in sessions.records] == [2, 4]
    assert made.table is not None
    assert made.table.error == pytest.approx(0.0)
    assert "cells are run." in made.table.how


def test_other_batches_are_run_where_nothing_has_a_name() -> None:
    sessions = Sessions(extra=2 * GIB)

    made = estimate(
        a_job(),
        Virtual(sessions, SMALL),
        Wanted(with_limits=False, with_table=True, batches=(1, 2), lengths=(1024,)),
    )

    assert [one.job.batch for one in sessions.records] == [2, 1]
    assert made.table is not None
    assert made.table.how == "Every cell is run."


def test_settings_of_the_allocator_are_run_and_not_replayed() -> None:
    sessions = Sessions()
    text = "expandable_segments:True"

    made = estimate(
        a_job(),
        Virtual(sessions, SMALL, settings=text),
        Wanted(with_limits=False, alloc_confs=(text,)),
    )

    assert [one.settings for one in sessions.records] == [text, ""]
    assert [one.name for one in made.alloc_confs] == ["default", text]


def test_cards_with_the_same_kernels_share_a_run() -> None:
    sessions = Sessions()
    newer = CardSpec(name="newer", capability=(9, 0), processors=132, total_bytes=80 * GIB)

    estimate(
        a_job(), Virtual(sessions, SMALL), Wanted(cards=(SMALL, LARGE, newer), with_limits=False)
    )

    assert [one.card.name for one in sessions.records] == ["small", "newer"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            WorkerError(
                "oom", "OutOfMemoryError in m.py:f: Tried to. Including non-PyTorch memory"
            ),
            "the run ends with torch's own error, OutOfMemoryError in m.py:f: Tried to",
        ),
        (WorkerError("crashed", "it ended\nmore"), "the run could not be made (it ended)"),
        (None, "the run comes to its end"),
    ],
)
def test_a_card_that_may_be_too_small_is_tried_as_it_is(
    error: WorkerError | None, said: str
) -> None:
    sessions = Sessions(breaks=error, ends_late=True)
    tiny = a_card(2 * GIB, "tiny")

    made = estimate(
        a_job(), Virtual(sessions, tiny), Wanted(cards=(tiny, LARGE), with_limits=False)
    )

    assert [one.verdict for one in made.verdicts] == ["oom", "fits"]
    assert [(one.card.name, one.is_own_size) for one in sessions.records] == [
        ("tiny", False),
        ("tiny", True),
    ]
    start = "on a virtual tiny of 2.00 GiB, 460.80 MiB of it for the context, "
    assert made.told[-1] == start + said


def test_without_a_card_the_usual_one_is_taken_and_said() -> None:
    sessions = Sessions()

    made = estimate(a_job(), Virtual(sessions, None), Wanted(with_limits=False))

    assert sessions.records[0].card == usual_card()
    assert made.told[0] == NO_CARD
    assert len(made.verdicts) == 10


def test_what_the_card_does_not_model_stands_among_the_assumptions() -> None:
    log = "ignored cuCtxSetFlags\nread 17 8 train.py:41 in train\n"

    made = Virtual(Sessions(log=log), SMALL).peak(a_job())

    assert "calls that did nothing: cuCtxSetFlags" in made.assumptions
    assert any(one.startswith("8 reads of values that only a GPU") for one in made.assumptions)


def test_a_page_says_that_the_card_was_virtual() -> None:
    made = estimate(a_job(), Virtual(Sessions(), SMALL), Wanted(cards=(SMALL,), with_limits=False))

    page = estimate_page(made)

    assert page.lead[1] == "Run on a virtual small by the CUDA build of torch 2.13.0."
    assert any(one.startswith("Nothing was computed;") for one in page.notes)
    assert any(one.startswith("Libraries of the run: torch 2.13.0") for one in page.notes)


def test_a_run_that_fails_is_told_and_nothing_stands_in_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions = Sessions(breaks=WorkerError("unsupported", "RuntimeError: no kernel", hint="do it"))
    monkeypatch.setattr(virtual_sessions, "VirtualSessions", lambda *_: sessions)
    monkeypatch.setattr(sessions, "close", lambda: None, raising=False)
    engines = Engines("virtual", python="python")

    with pytest.raises(NotSimulatedError, match="--engine virtual: unsupported: Runt") as caught:
        engines.speak(SMALL, lambda engine: engine.peak(a_job()))

    assert caught.value.exit_code == 3
    assert caught.value.hint == "do it"
