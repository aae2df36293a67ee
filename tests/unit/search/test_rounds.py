"""Rounds: searches side by side get their own results, and all end when one has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.model.trial import FIT
from oomdoctor.search.rounds import Ask, Stopped, abreast, run
from tests.unit.search.trials import result

if TYPE_CHECKING:
    from oomdoctor.model.trial import TrialResult
    from oomdoctor.search.rounds import Search


def wanting(name: str, sizes: list[int]) -> Search[list[str]]:
    """Ask for rounds of these sizes; answer with what came of them."""
    seen: list[str] = []
    for size in sizes:
        try:
            results = yield tuple(Ask(values={name: len(seen) + one}) for one in range(size))
        except Stopped as stop:
            return [*seen, *(str(dict(one.values)) for one in stop.results), stop.reason]
        seen += [str(dict(one.values)) for one in results]
    return seen


@given(st.lists(st.lists(st.integers(1, 3), max_size=4), max_size=4))
def test_searches_side_by_side_answer_as_they_do_alone(all_sizes: list[list[int]]) -> None:
    def searches() -> list[Search[list[str]]]:
        return [wanting(f"x{number}", sizes) for number, sizes in enumerate(all_sizes)]

    def trial(ask: Ask) -> TrialResult:
        return result(ask, FIT)

    assert [run(one, trial) for one in searches()] == list(run(abreast(searches()), trial))


def test_a_stop_reaches_all_and_results_reach_their_own_search() -> None:
    both = abreast([wanting("a", [1]), wanting("b", [1, 2]), wanting("c", [2, 1])])
    first = next(both)
    asks = both.send(tuple(result(one, FIT) for one in first))
    done = result(asks[1], FIT)
    with pytest.raises(StopIteration) as end:
        both.throw(Stopped("enough", (done,)))

    assert end.value.value == (
        ["{'a': 0}"],
        ["{'b': 0}", "{'b': 2}", "enough"],
        ["{'c': 0}", "{'c': 1}", "enough"],
    )
