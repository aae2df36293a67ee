"""Messages of the processes become the figures of a trial."""

from __future__ import annotations

from typing import Any

from oomdoctor.lab.told import Told
from oomdoctor.model.trial import PhasePeak


def told(*messages: dict[str, Any]) -> Told:
    heard = Told()
    for message in messages:
        heard.hear({"pid": 1, "rank": None, "world": 1, **message})
    return heard


def step(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "step", "number": number, "phase": "train step", **more}


def test_a_phase_has_the_highest_figures_of_all_ranks() -> None:
    heard = told(
        {**step(1, allocated_bytes=5, host_bytes=9), "pid": 1},
        {**step(1, allocated_bytes=7, host_bytes=3), "pid": 2},
        {"type": "phase", "phase": "train step", "seconds": 2.0, "allocated_bytes": 6},
    )

    assert heard.phases() == (
        PhasePeak(name="train step", allocated_bytes=7, host_bytes=9, seconds=2.0),
    )


def test_a_launcher_counts_neither_as_a_rank_nor_in_the_peaks() -> None:
    heard = told(
        {"type": "peak", "pid": 9, "phase": "load", "host_bytes": 10**9},
        {**step(2, host_bytes=5), "pid": 1, "world": 2},
        {**step(1, host_bytes=4), "pid": 2, "world": 2},
    )

    assert heard.ranks == 2
    assert heard.steps == 1
    assert [one.host_bytes for one in heard.phases()] == [5]


def test_seconds_are_the_median_of_the_slowest_rank_and_tokens_the_sum_of_all() -> None:
    heard = told(
        *({**step(n, seconds=s, tokens=100), "pid": 1} for n, s in ((1, None), (2, 1.0), (3, 9.0))),
        *({**step(n, seconds=2.0, tokens=60), "pid": 2} for n in (1, 2)),
    )

    assert heard.step_seconds() == 5.0
    assert heard.tokens_per_step() == 160


def test_interventions_are_counted_and_notes_kept() -> None:
    heard = told(
        {"type": "intervened", "name": "no-grad", "times": 1},
        {"type": "intervened", "name": "no-grad", "times": 4},
        {"type": "note", "text": "no-grad: said"},
        {"type": "fault", "where": "steps", "error": "KeyError()"},
    )

    assert heard.interventions == {"no-grad": 4}
    assert heard.notes == ["no-grad: said", "the hook steps failed: KeyError()"]


def test_a_message_that_is_none_is_passed_over() -> None:
    heard = told()

    heard.hear({"type": "step"})
    heard.hear({"pid": "x"})

    assert heard.speakers == {}


def test_what_is_held_after_each_step_is_that_of_the_rank_that_holds_most() -> None:
    told = Told()
    for pid, sizes in ((1, (10, 12, 14)), (2, (10, 30, 50))):
        for number, size in enumerate(sizes, 1):
            told.hear({"type": "step", "pid": pid, "number": number, "held_bytes": size})
    told.hear({"type": "held", "pid": 1, "text": "a graph is held by total"})

    assert told.held_bytes() == (10, 30, 50)
    assert told.held_sites == ["a graph is held by total"]
