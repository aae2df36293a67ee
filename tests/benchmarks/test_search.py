"""The comparison of searches: its jobs are what they say, and its goals hold as they are stored."""

from __future__ import annotations

import json

import pytest

from benchmarks.search import ON_FLOORS, OURS, PAGE, STORED, measured, missed, summary, table
from benchmarks.search_jobs import JOBS, VALUES, jobs

RESULTS = json.loads(STORED.read_text())


def test_the_largest_value_of_a_job_is_where_its_peak_meets_the_card() -> None:
    made = jobs()

    assert len(made) == JOBS
    assert {0, VALUES} <= {one.largest for one in made}
    for job in made:
        at, beyond = (job.bytes_at(one * job.axis.step) for one in (job.largest, job.largest + 1))
        assert at <= job.cap_bytes < beyond, job.name
        sure, possible = job.fits_within()
        assert sure <= job.largest <= possible


def test_jobs_differ_in_all_that_makes_a_search_hard() -> None:
    made = jobs()

    assert {"batch", "seq"} == {one.axis.name for one in made}
    for many in (
        sum(bool(one.shape.jumps) for one in made),
        sum(one.noise_bytes > 0 for one in made),
        sum(one.told_bytes != one.cap_bytes for one in made),
        sum(one.shape.quadratic > 0 for one in made),
        sum(one.largest > VALUES // 4 for one in made),
    ):
        assert many >= JOBS / 8


def test_a_floor_is_given_to_some_jobs_and_moves_no_edge() -> None:
    plain, floored = jobs(), jobs(floors=0.2)

    with_floor = [one for one in floored if one.shape.floor]
    assert 0.15 * JOBS <= len(with_floor) <= 0.25 * JOBS
    assert [one.fits_within() for one in floored] == [one.fits_within() for one in plain]
    assert not any(one.shape.floor for one in plain)


def test_an_answer_counts_as_shown_only_with_a_trial_on_either_side() -> None:
    job = next(one for one in jobs() if one.noise_bytes == 0 and 3 < one.largest < VALUES)
    edge = job.largest
    both = [(edge, True), (edge + 1, False), (edge, True)]

    rows = [(job, edge, both), (job, edge, both[:2]), (job, edge, both[:1]), (job, edge - 1, both)]

    made = summary(rows)
    assert (made["right"], made["brackets"], made["fitted_twice"]) == (3, 2, 1)


@pytest.mark.slow
def test_our_searches_come_out_as_they_are_stored() -> None:
    now = measured(None, RESULTS)

    ours = [*OURS, *ON_FLOORS.values()]
    assert {name: RESULTS[name] for name in ours} == {name: now[name] for name in ours}


def test_no_goal_is_missed() -> None:
    assert missed(RESULTS) == []


def test_the_page_shows_the_stored_results() -> None:
    assert table(RESULTS) in PAGE.read_text()
