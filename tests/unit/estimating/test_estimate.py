"""Whole estimates: the engine that speaks, what is compared, and what falls back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.estimating.choice import Engines
from oomdoctor.estimating.engine import NotSimulatedError
from oomdoctor.estimating.estimate import Wanted, compared, estimate
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.lab.session import WorkerError
from tests.unit.estimating.doubles import GIB, Double, a_card, a_job

if TYPE_CHECKING:
    from oomdoctor.lab.protocol import TraceRequest
    from oomdoctor.memory.stream import Stream
    from oomdoctor.model.estimate import Estimate

CARDS = (a_card(24 * GIB, "small"), a_card(80 * GIB, "large"))


def estimated(**values: object) -> Estimate:
    engine = Simulation(Double(), CARDS[0])
    return estimate(a_job(), engine, Wanted(cards=CARDS, **values), assumptions=("a thing",))


def test_an_estimate_has_everything_that_follows_from_one_trace() -> None:
    made = estimated(with_limits=False)
    assert made.engine == "simulate"
    assert made.peak_allocated_bytes == sum(one.bytes for one in made.parts)
    assert made.peak_allocated_bytes == sum(one.bytes for one in made.categories)
    assert len(made.parts) == 6
    assert 0 < len(made.owners) <= 10
    assert [one.name for one in made.phases] == ["load", "step 1", "step 2"]
    assert made.peak_phase == "step 2"
    assert [one.card for one in made.verdicts] == ["small", "large"]
    assert made.assumptions == ("a thing", "nothing is assumed")
    assert made.line


def test_the_usual_cards_are_judged_where_none_is_named() -> None:
    engine = Simulation(Double(), CARDS[0])
    made = estimate(a_job(), engine, Wanted(with_limits=False))
    assert len(made.verdicts) == 10
    assert all(one.failed is None for one in made.verdicts)
    assert made.limits == ()


def test_limits_are_told_for_each_card_that_is_named() -> None:
    made = estimated()
    assert [(one.card, one.what) for one in made.limits] == [
        ("small", "batch"),
        ("small", "length"),
        ("large", "batch"),
        ("large", "length"),
    ]
    small, large = (next(x for x in made.limits if x.card == one.name) for one in CARDS)
    assert small.largest < large.largest
    assert made.rates is not None


def test_settings_are_compared_with_the_defaults() -> None:
    made = estimated(alloc_confs=("expandable_segments:True",), with_limits=False)
    assert [one.name for one in made.alloc_confs] == ["default", "expandable_segments:True"]
    plain, expandable = made.alloc_confs
    assert plain.peak_allocated_bytes == expandable.peak_allocated_bytes
    assert plain.peak_reserved_bytes != expandable.peak_reserved_bytes


def test_settings_that_torch_refuses_are_refused() -> None:
    with pytest.raises(InputError, match="--alloc-conf 'expandable:True': Unrecognized key"):
        estimated(alloc_confs=("expandable:True",))


def test_another_job_stands_beside() -> None:
    engine = Simulation(Double(), CARDS[0])
    other = compared("batch=4", a_job(batch=4), engine, Wanted(cards=CARDS))
    assert other.peak_allocated_bytes > estimated(with_limits=False).peak_allocated_bytes
    assert len(other.verdicts) == 2


def test_a_table_is_made_where_it_is_asked_for() -> None:
    made = estimated(with_table=True, batches=(1, 2), lengths=(256, 512, 1024))
    assert made.table is not None
    assert [len(row) for row in made.table.rows] == [3, 3]
    assert all(len(cell.verdicts) == 2 for row in made.table.rows for cell in row)
    assert "3 of" in made.table.how or "2 of" in made.table.how or "1 of" in made.table.how


def test_the_formula_speaks_where_a_job_cannot_be_traced() -> None:
    double = Double(fails=WorkerError("unsupported", "such a model cannot be built"))
    engines = Engines(None, tracer=double)
    assert engines.speak(CARDS[0], lambda engine: engine.name) == "simulate"
    answer = engines.speak(CARDS[0], lambda engine: engine.peak(a_job()).engine)
    assert answer == "formula"
    assert engines.fallback == "unsupported: such a model cannot be built"
    assert engines.name == "simulate"  # the next job may be one that can be traced


def test_why_there_is_no_trace_does_not_end_at_a_colon() -> None:
    raised = (
        "its config cannot be read: Class validation failed:\n    3 heads do not divide 64\nmore"
    )
    engines = Engines(None, tracer=Double(fails=WorkerError("unsupported", raised)))
    engines.speak(CARDS[0], lambda engine: engine.peak(a_job()))
    assert engines.fallback is not None
    assert engines.fallback.endswith("validation failed: 3 heads do not divide 64")


def test_without_torch_no_other_job_is_tried() -> None:
    double = Double(fails=WorkerError("no-torch", "torch cannot be imported"))
    engines = Engines(None, tracer=double)
    for _ in range(3):
        engines.speak(None, lambda engine: engine.peak(a_job()))
    assert len(double.requests) == 1


def test_a_simulation_that_was_asked_for_by_name_is_refused_where_there_is_none() -> None:
    double = Double(fails=WorkerError("unsupported", "such a model cannot be built"))
    engines = Engines("simulate", tracer=double)
    with pytest.raises(NotSimulatedError, match="such a model cannot be built") as caught:
        engines.speak(CARDS[0], lambda engine: engine.peak(a_job()))
    assert caught.value.exit_code == 3
    assert "--engine formula" in str(caught.value.hint)


def test_the_formula_is_asked_for_by_name() -> None:
    engines = Engines("formula")
    assert engines.speak(None, lambda engine: engine.name) == "formula"
    assert engines.fallback is None


def test_cards_of_another_generation_have_traces_of_their_own() -> None:
    old, new = a_card(24 * GIB, "old"), a_card(80 * GIB, "new")
    new = type(new)(name="new", capability=(9, 0), processors=132, total_bytes=80 * GIB)
    double = Double()
    engine = Simulation(double, old)
    made = estimate(a_job(), engine, Wanted(cards=(old, old, new), with_limits=False))
    assert [one.card.capability for one in double.requests] == [(8, 0), (9, 0)]
    assert len(made.verdicts) == 3


def test_a_table_without_a_card_has_no_verdicts() -> None:
    engine = Simulation(Double(), CARDS[0])
    wanted = Wanted(with_table=True, with_limits=False, batches=(1,), lengths=(512,))
    made = estimate(a_job(), engine, wanted)
    assert made.table is not None
    assert made.table.rows[0][0].verdicts == ()


class Crashing(Double):
    """Crashes over every second request."""

    def trace(self, request: TraceRequest) -> Stream:
        found = super().trace(request)
        if len(self.requests) % 2 == 0:
            raise WorkerError("crashed", "the worker ended: SIGSEGV")
        return found


def test_a_worker_that_crashes_later_gets_one_more_try() -> None:
    double = Crashing()
    engine = Simulation(double, CARDS[0])
    engine.peak(a_job())
    engine.peak(a_job(batch=3))
    assert len(double.requests) == 3


def test_a_worker_that_crashes_at_once_is_not_tried_again() -> None:
    double = Double(fails=WorkerError("crashed", "the worker ended"))
    with pytest.raises(WorkerError):
        Simulation(double, CARDS[0]).peak(a_job())
    assert len(double.requests) == 1


def test_the_peak_stands_where_other_batches_cannot_be_traced() -> None:
    class Once(Double):
        def trace(self, request: TraceRequest) -> Stream:
            if self.requests:
                raise WorkerError("unsupported", "not that one")
            return super().trace(request)

    made = estimate(a_job(), Simulation(Once(), CARDS[0]), Wanted(cards=CARDS))
    assert made.peak_allocated_bytes > 0
    assert made.limits == ()
    assert any("other batches could not be traced" in one for one in made.assumptions)
