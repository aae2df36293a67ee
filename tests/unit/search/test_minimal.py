"""The smallest set of changes: each member needed, the cheap before the dear, few trials."""

from __future__ import annotations

import statistics
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.model.trial import CRASH, FIT, OOM, TrialResult
from oomdoctor.search.minimal import COSTS, MEMORY, QUALITY, SPEED, Change, find_minimal, in_order
from oomdoctor.search.rounds import Ask, Stopped, run
from tests.unit.search.trials import result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random


def oracle(fits: Callable[[frozenset[str]], bool | None]) -> Callable[[Ask], TrialResult]:
    """Return trials that a function of the applied changes decides; None is a crash."""

    def run_one(ask: Ask) -> TrialResult:
        assert set(ask.values.values()) <= {1}
        told = fits(frozenset(ask.values))
        return result(ask, {True: FIT, False: OOM, None: CRASH}[told])

    return run_one


def changes(savings: Iterable[int], costs: Iterable[str] = ()) -> list[Change]:
    kinds = list(costs)
    return [
        Change(name=f"c{k}", saving_bytes=one, cost=kinds[k] if kinds else SPEED)
        for k, one in enumerate(savings)
    ]


@st.composite
def monotone(draw: st.DrawFn) -> tuple[list[Change], int | None, list[frozenset[str]]]:
    """Draw changes and the sets that are enough; whatever holds one of them is enough, too."""
    count = draw(st.integers(1, 8))
    names = [f"c{k}" for k in range(count)]
    made = [
        Change(
            name=name,
            saving_bytes=draw(st.none() | st.integers(0, 50)),
            cost=draw(st.sampled_from(COSTS)),
        )
        for name in names
    ]
    sets = st.frozensets(st.sampled_from(names), min_size=1)
    return made, draw(st.none() | st.integers(0, 200)), draw(st.lists(sets, max_size=4))


@settings(deadline=None)
@given(monotone())
def test_a_set_is_enough_and_no_member_can_be_left_out(
    drawn: tuple[list[Change], int | None, list[frozenset[str]]],
) -> None:
    made, overshoot, enough = drawn

    def fits(chosen: frozenset[str]) -> bool:
        return any(one <= chosen for one in enough)

    found = run(find_minimal(made, overshoot_bytes=overshoot), oracle(fits))

    assert bool(enough) == found.fits
    assert bool(enough) == found.proven
    if found.fits:
        assert fits(frozenset(found.changes))
        assert not any(fits(frozenset(found.changes) - {one}) for one in found.changes)
    asked = [frozenset(one.values) for one in found.trials]
    assert len(set(asked)) == len(asked)


@settings(deadline=None)
@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_where_more_changes_can_need_more_memory_no_member_can_be_left_out_either(
    count: int, wild: Random
) -> None:
    made = changes(wild.randrange(10) for _ in range(count))
    table: dict[frozenset[str], bool] = {frozenset(): False}

    def fits(chosen: frozenset[str]) -> bool:
        return table.setdefault(chosen, wild.random() < 0.5)

    found = run(find_minimal(made), oracle(fits))

    if found.fits:
        assert table[frozenset(found.changes)]
        if found.proven and any(
            fits_more != fits_less and less <= more and fits_less
            for more, fits_more in table.items()
            for less, fits_less in table.items()
        ):
            singles = [frozenset(found.changes) - {one} for one in found.changes]
            assert not any(table[one] for one in singles)


@given(monotone(), st.integers(0, 6))
def test_a_stopped_search_gives_the_best_set_so_far(
    drawn: tuple[list[Change], int | None, list[frozenset[str]]], trials: int
) -> None:
    made, overshoot, enough = drawn
    search = find_minimal(made, overshoot_bytes=overshoot)
    trial = oracle(lambda chosen: any(one <= chosen for one in enough))
    seen: list[TrialResult] = []
    try:
        asks = next(search)
        for _ in range(trials):
            seen.append(trial(asks[0]))
            asks = search.send((seen[-1],))
        search.throw(Stopped("interrupted"))
    except StopIteration as end:
        found = end.value

    fitting = [one for one in seen if one.outcome == FIT]
    assert bool(fitting) == found.fits
    if fitting:
        assert len(found.changes) == min(len(one.values) for one in fitting)
    assert found.proven or found.stopped == "interrupted" or not enough


def test_what_costs_quality_comes_last() -> None:
    made = changes([5, 5, 9, 9, 1], [QUALITY, SPEED, SPEED, MEMORY, MEMORY])

    assert [one.name for one in in_order(made)] == ["c3", "c4", "c2", "c1", "c0"]


def test_a_change_that_touches_quality_is_dropped_where_others_do() -> None:
    made = changes([10, 10, 10], [QUALITY, SPEED, MEMORY])

    found = run(find_minimal(made, overshoot_bytes=15), oracle(lambda one: len(one) >= 2))

    assert found.changes == ("c2", "c1")
    assert found.proven


def test_a_run_that_fits_as_it_is_needs_no_change() -> None:
    found = run(find_minimal(changes([1, 2])), oracle(lambda _: True))

    assert (found.changes, found.fits, found.proven) == ((), True, True)
    assert len(found.trials) == 1
    assert found.reason == "the run without any change fits"


def test_where_all_changes_together_fail_that_is_said() -> None:
    found = run(find_minimal(changes([1, 2, 3])), oracle(lambda _: False))

    assert (found.fits, found.proven) == (False, False)
    assert found.reason == "even all changes together do not remove the failure"


def test_a_change_with_which_trials_crash_is_left_aside() -> None:
    found = run(
        find_minimal(changes([9, 8, 7, 6, 5]), overshoot_bytes=24),
        oracle(lambda one: None if "c1" in one else len(one) >= 3),
    )

    assert found.unresolved == ("c1",)
    assert found.fits
    assert len(found.changes) == 3
    assert "c1" not in found.changes


def test_a_crash_of_the_unchanged_run_ends_the_search() -> None:
    found = run(find_minimal(changes([9, 8])), oracle(lambda _: None))

    assert len(found.trials) == 1
    assert not found.fits
    assert found.reason == "the run without any change ended without telling whether it fits"


@pytest.mark.parametrize("off", [(1.0,) * 5, (1.3, 0.7, 1.0, 0.8, 1.2)])
def test_a_set_is_found_in_few_trials_where_savings_are_roughly_known(off: list[float]) -> None:
    counts = []
    for savings in permutations((20, 35, 60, 90, 140)):
        for need in (15, 60, 120, 180, 240):
            named = {f"c{k}": one for k, one in enumerate(savings)}
            made = [
                Change(name=name, saving_bytes=round(one * times), cost=cost)
                for (name, one), times, cost in zip(
                    named.items(), off, [QUALITY, SPEED, SPEED, MEMORY, MEMORY], strict=True
                )
            ]
            trial = oracle(lambda one, s=named, n=need: sum(s[name] for name in one) >= n)
            found = run(find_minimal(made, overshoot_bytes=need), trial)
            assert found.proven
            counts.append(len(found.trials))

    assert statistics.median(counts) <= 5
