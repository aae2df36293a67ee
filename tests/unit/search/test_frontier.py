"""The frontier of two axes, and the fastest setting on one: right rows, few trials."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import CRASH, FIT, OOM, TrialResult
from oomdoctor.search.axes import QUADRATIC, Axis
from oomdoctor.search.edge import find_edge
from oomdoctor.search.fastest import fastest_of, find_fastest
from oomdoctor.search.frontier import find_frontier, ladder
from oomdoctor.search.rounds import Stopped, run
from tests.unit.search.trials import GIB, by, result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.trial import Value
    from oomdoctor.search.rounds import Ask

BATCH = Axis(name="batch", low=1, high=256)
SEQ = Axis(name="seq", low=512, high=16384, step=512, growth=QUADRATIC)
CAP = 40 * GIB


def peak(values: Mapping[str, Value]) -> float:
    batch, seq = float(values["batch"]), float(values["seq"])
    return 9 * GIB + batch * seq * (1 << 19) + batch * seq * seq * 40


def largest(seq: float) -> int:
    fitting = [one for one in range(1, 257) if peak({"batch": one, "seq": seq}) <= CAP]
    return max(fitting, default=0)


@pytest.mark.parametrize("width", [1, 4])
def test_the_frontier_is_that_of_every_row_searched_alone(width: int) -> None:
    backend = FormulaBackend(peak, cap_bytes=CAP)

    found = run(find_frontier(SEQ, BATCH, cap_bytes=CAP, width=width), by(backend))

    assert [row for row, _ in found.rows] == [512, 1024, 2048, 4096, 8192, 16384]
    assert [largest(row) for row, _ in found.rows] == [
        a.bracket.fits_at or 0 for _, a in found.rows
    ]
    assert all(one.bracket.proven for _, one in found.rows)


def test_a_frontier_takes_fewer_trials_than_its_rows_alone() -> None:
    found = run(find_frontier(SEQ, BATCH, cap_bytes=CAP), by(FormulaBackend(peak, cap_bytes=CAP)))

    alone = 0
    for row, _ in found.rows:
        search = find_edge(BATCH, cap_bytes=CAP, fixed={"seq": int(row)})
        alone += len(run(search, by(FormulaBackend(peak, cap_bytes=CAP))).trials)
    assert len(found.trials) < alone
    assert len(found.trials) <= 4.5 * len(found.rows)


@st.composite
def fields(draw: st.DrawFn) -> list[int]:
    """Draw how many inner values fit in each row: never more than in the row before."""
    counts = draw(st.lists(st.integers(0, 40), min_size=1, max_size=12))
    return sorted(counts, reverse=True)


@settings(deadline=None)
@given(fields(), st.sampled_from([1, 3]), st.booleans(), st.booleans())
def test_the_frontier_is_monotone_and_that_of_a_full_scan(
    counts: list[int], width: int, outer_rises: bool, tells_peaks: bool
) -> None:
    outer = Axis(name="seq", low=1, high=len(counts), rising=outer_rises)
    inner = Axis(name="batch", low=1, high=40)
    run_twice: set[tuple[float, float, int]] = set()

    def trial(ask: Ask) -> TrialResult:
        row, value = float(ask.values["seq"]), float(ask.values["batch"])
        assert (row, value, ask.repeat) not in run_twice
        run_twice.add((row, value, ask.repeat))
        fits = value <= counts[outer.position(row)]
        return result(ask, FIT if fits else OOM, round(100 * value * row) if tells_peaks else None)

    values = [outer.value(one) for one in range(outer.count)]
    search = find_frontier(outer, inner, outer_values=values, cap_bytes=5000, width=width)
    found = run(search, trial)

    by_row = {row: int(one.bracket.fits_at or 0) for row, one in found.rows}
    assert {float(outer.value(k)): count for k, count in enumerate(counts)} == by_row
    edges = [by_row[outer.value(k)] for k in range(outer.count)]
    assert all(one >= other for one, other in pairwise(edges))
    assert all(one.bracket.proven for _, one in found.rows)


def test_a_row_between_two_that_end_alike_takes_no_trial() -> None:
    outer = Axis(name="seq", low=1, high=7)

    def trial(ask: Ask) -> TrialResult:
        return result(ask, FIT if float(ask.values["batch"]) <= 5 else OOM)

    found = run(find_frontier(outer, Axis(name="batch", low=1, high=40)), trial)

    untried = [one for _, one in found.rows if not one.trials]
    assert untried
    assert all(one.bracket.inferred == ("fits_at", "ooms_at") for one in untried)
    assert {5} == {one.bracket.fits_at for _, one in found.rows}


def test_a_stopped_frontier_keeps_the_rows_that_are_known() -> None:
    search = find_frontier(SEQ, BATCH, cap_bytes=CAP)
    trial = by(FormulaBackend(peak, cap_bytes=CAP))
    asks = next(search)
    for _ in range(9):
        asks = search.send(tuple(trial(one) for one in asks))
    with pytest.raises(StopIteration) as end:
        search.throw(Stopped("interrupted"))

    found = end.value.value
    assert found.stopped == "interrupted"
    assert len(found.trials) == 9
    first = dict(found.rows)[4096]
    assert first.bracket.proven
    assert first.bracket.fits_at == largest(4096)


def test_a_row_that_tells_nothing_does_not_end_the_frontier() -> None:
    def trial(ask: Ask) -> TrialResult:
        if ask.values["seq"] == 4096:
            return result(ask, CRASH)
        return by(FormulaBackend(peak, cap_bytes=CAP))(ask)

    found = run(find_frontier(SEQ, BATCH, cap_bytes=CAP), trial)

    rows = dict(found.rows)
    assert rows[4096].stopped is not None
    assert largest(512) == rows[512].bracket.fits_at
    assert found.stopped is None


def test_the_rows_of_a_long_axis_double() -> None:
    assert ladder(SEQ) == [512, 1024, 2048, 4096, 8192, 16384]
    assert ladder(Axis(name="x", low=3, high=50)) == [3, 6, 12, 24, 48, 50]
    assert ladder(Axis(name="x", low=0, high=20)) == [0, 1, 2, 4, 8, 16, 20]
    assert ladder(Axis(name="x", low=2, high=5)) == [2, 3, 4, 5]


def speeds(per_second: Callable[[float], float]) -> FormulaBackend:
    return FormulaBackend(
        lambda values: 4 * GIB + GIB * float(values["batch"]),
        cap_bytes=CAP,
        speed=lambda values: (per_second(float(values["batch"])), 1.0),
    )


def test_the_fastest_setting_may_be_below_the_edge() -> None:
    backend = speeds(lambda batch: 1000 * batch if batch <= 12 else 12000 - 150 * (batch - 12))

    found = run(find_fastest(BATCH, cap_bytes=CAP), by(backend))

    assert found.bracket.fits_at == 36
    assert found.best is not None
    assert (found.best.tokens_per_second or 0) >= 0.97 * 12000
    assert len(found.trials) <= 14


def test_the_fastest_setting_is_the_edge_where_speed_grows_up_to_it() -> None:
    found = run(find_fastest(BATCH, cap_bytes=CAP), by(speeds(lambda batch: 100 * batch)))

    assert found.best is not None
    assert found.best.values == {"batch": 36}
    assert len(found.trials) <= 8


def test_without_speeds_there_is_no_fastest_setting_and_the_reason_is_said() -> None:
    backend = FormulaBackend(lambda values: GIB * float(values["batch"]), cap_bytes=CAP)

    found = run(find_fastest(BATCH, cap_bytes=CAP), by(backend))

    assert found.best is None
    assert found.bracket.fits_at == 40
    assert found.stopped == "no trial told how many tokens it did in a second"


def test_a_fastest_search_that_is_stopped_gives_the_fastest_so_far() -> None:
    search = find_fastest(BATCH, cap_bytes=CAP)
    trial = by(speeds(lambda batch: 5000 - abs(batch - 9) * 10))
    asks = next(search)
    for _ in range(6):
        asks = search.send(tuple(trial(one) for one in asks))
    with pytest.raises(StopIteration) as end:
        search.throw(Stopped("interrupted"))

    found = end.value.value
    assert found.stopped == "interrupted"
    assert found.bracket.proven
    assert found.best == max(found.trials, key=lambda one: one.tokens_per_second or 0)


def test_the_fastest_of_a_frontier_is_its_fastest_trial_that_fits() -> None:
    backend = FormulaBackend(
        peak, cap_bytes=CAP, speed=lambda values: (float(values["seq"]) * 100, 1.0)
    )

    found = run(find_frontier(SEQ, BATCH, cap_bytes=CAP), by(backend))

    best = fastest_of(found)
    assert best is not None
    assert best.outcome == FIT
    assert best.values["seq"] == max(row for row, one in found.rows if one.bracket.fits_at)


def test_a_frontier_whose_trials_all_crash_is_given_up_after_three_rows() -> None:
    found = run(
        find_frontier(SEQ, BATCH, cap_bytes=CAP),
        lambda ask: result(ask, CRASH),
    )

    assert len(found.rows) == 3
    assert len(found.trials) == 9
    assert "without telling whether they fit" in (found.stopped or "")
