"""What a book makes of the messages and samples of a run, and the verdicts on all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.growth.book import Book
from oomdoctor.growth.findings import DEVICE, HOST, Finding, findings
from oomdoctor.growth.verdict import Kind, Level
from tests.unit.growth.made import GIB, MIB

START = 1_796_000_000.0
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    (
        *("type", "t", "pid", "rank", "number", "steps", "phase", "allocated_bytes", "rss_bytes"),
        *("host", "processes", "devices", "cards", "index", "total_bytes", "available_bytes"),
    )
)
TYPES = st.sampled_from(["step", "phase", "sample", "cards", "oom", "exit", "hello"])


def step(number: int, **figures: object) -> dict[str, Any]:
    told = {"type": "step", "pid": 1, "t": START + number, "number": number, "phase": "train step"}
    return {**told, **figures}


def sample(at: float, **more: object) -> dict[str, Any]:
    return {"t": at, "host": {"available_bytes": 20 * GIB, "total_bytes": 64 * GIB}, **more}


def of(book: Book, memory: str, **wanted: object) -> Finding:
    found = [one for one in findings(book) if one.memory == memory]
    (only,) = [one for one in found if all(getattr(one, k) == v for k, v in wanted.items())]
    return only


def test_steps_make_a_series_of_what_is_kept_and_its_peaks() -> None:
    book = Book(START)
    book.hear("1-1", step(3, allocated_bytes=GIB, peak_allocated_bytes=2 * GIB, rss_bytes=5))

    (process,) = book.processes.values()
    assert process.allocated.points == ((3, 3.0, GIB, 2 * GIB),)
    assert process.stepped_host.points == ((3, 3.0, 5, 5),)
    assert (process.step, process.phase) == (3, "train step")


def test_steps_that_are_told_at_the_exit_have_the_figures_of_the_exit() -> None:
    book = Book(START)
    book.hear("1-1", step(1, allocated_bytes=GIB))
    book.hear("1-1", step(9, steps=8, allocated_bytes=MIB))
    book.hear("1-1", {"type": "phase", "pid": 1, "phase": "train step"})
    book.hear("1-1", {"type": "exit", "pid": 1, "number": 9})

    (process,) = book.processes.values()
    assert [one.low for one in process.allocated.points] == [GIB]
    assert process.step == 9


def test_steps_that_are_summed_up_count_once_the_process_goes_on() -> None:
    book = Book(START)
    book.hear("1-1", step(9, steps=8, allocated_bytes=GIB))
    book.hear("1-1", step(10, allocated_bytes=GIB))

    (process,) = book.processes.values()
    assert [one.at for one in process.allocated.points] == [9, 10]


def test_what_was_told_without_steps_does_not_mix_with_steps() -> None:
    book = Book(START)
    for second in range(5):
        told = {"type": "sample", "pid": 1, "t": START + second, "allocated_bytes": MIB}
        book.hear("1-1", told)
    book.hear("1-1", step(1, allocated_bytes=GIB))

    (process,) = book.processes.values()
    assert [one.low for one in process.allocated.points] == [GIB]


def test_a_process_is_one_whether_it_is_seen_first_or_heard_first() -> None:
    book = Book(START)
    book.see(sample(0.5, processes=[{"pid": 1, "name": "python", "rss_bytes": GIB}]))
    book.hear("1-77", step(1, rss_bytes=GIB))
    book.see(sample(1.5, processes=[{"pid": 1, "name": "python", "rss_bytes": GIB}]))

    assert list(book.processes) == ["1-77"]
    assert book.processes["1-77"].name == "python"


def test_a_memory_group_bounds_what_is_left() -> None:
    book = Book(START)
    group = {"cgroup_limit_bytes": 3 * GIB, "cgroup_used_bytes": GIB}
    book.see({"t": 1, "host": {"available_bytes": 20 * GIB, "total_bytes": 64 * GIB, **group}})

    assert (book.available_bytes, book.total_bytes) == (2 * GIB, 3 * GIB)


def test_a_leak_of_one_rank_is_that_ranks() -> None:
    book = Book(START)
    card = {"type": "cards", "cards": [{"index": 0, "total_bytes": 16 * GIB}]}
    for rank in range(2):
        book.hear(f"{rank}-1", {**card, "pid": rank, "rank": rank})
        for number in range(1, 101):
            kept = GIB + rank * 40 * MIB * number
            book.hear(f"{rank}-1", step(number, pid=rank, rank=rank, allocated_bytes=kept))

    assert of(book, DEVICE, rank=0).verdict.kind is Kind.STEADY
    assert of(book, DEVICE, rank=1).verdict.level is Level.ALARM
    assert findings(book)[0].rank == 1


def test_the_limit_is_that_of_the_card_which_a_process_names() -> None:
    book = Book(START)
    cards = [{"index": at, "total_bytes": size * GIB} for at, size in ((0, 500), (1, 16))]
    book.see(sample(1.0, devices=cards))
    for number in range(1, 101):
        book.hear("1-1", step(number, device=1, allocated_bytes=GIB + 40 * MIB * number))

    assert of(book, DEVICE, pid=1).verdict.level is Level.ALARM


def test_pages_that_workers_copy_are_seen_in_the_sum_of_shares_alone() -> None:
    book = Book(START)
    for second in range(100):
        workers = [
            {"pid": 2 + at, "rss_bytes": GIB, "pss_bytes": GIB // 2 + second * 20 * MIB}
            for at in range(2)
        ]
        main = {"pid": 1, "rss_bytes": GIB, "pss_bytes": GIB // 2}
        book.see(sample(float(second), processes=[main, *workers]))

    assert {one.verdict.kind for one in findings(book) if one.pid is not None} == {Kind.STEADY}
    whole = of(book, HOST, pid=None)
    assert (whole.verdict.kind, whole.verdict.level) == (Kind.HOST_LEAK, Level.ALARM)


def test_the_job_is_not_accused_where_a_process_is() -> None:
    book = Book(START)
    for second in range(100):
        one = {"pid": 1, "rss_bytes": GIB + second * 60 * MIB}
        book.see(sample(float(second), processes=[one, {"pid": 2, "rss_bytes": GIB}]))

    assert of(book, HOST, pid=1).verdict.level is Level.ALARM
    assert of(book, HOST, pid=None).verdict.level is Level.QUIET


def test_what_others_take_of_a_card_is_theirs() -> None:
    book = Book(START)
    for second in range(100):
        card = {"index": 0, "total_bytes": 16 * GIB, "used_bytes": 9 * GIB, "ours_bytes": GIB}
        card["others_bytes"] = GIB + second * 100 * MIB
        book.see(sample(float(second), devices=[card]))

    assert of(book, DEVICE, others=True).verdict.kind is Kind.CARD_GROWTH
    assert of(book, DEVICE, others=False).verdict.kind is Kind.STEADY


def test_workers_that_are_gone_are_forgotten() -> None:
    book = Book(START)
    book.see(sample(1.0, processes=[{"pid": 1, "rss_bytes": 5}, {"pid": 2, "rss_bytes": 5}]))
    book.see(sample(2.0, processes=[{"pid": 1, "rss_bytes": 5}]))

    assert [one.pid for one in book.processes.values()] == [1]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "5", [5], -0.5])
def test_a_figure_that_is_none_is_left_out(value: object) -> None:
    book = Book(START)
    book.hear("1-1", step(1, allocated_bytes=value))

    (process,) = book.processes.values()
    assert process.allocated.points == ()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(KEYS, JSON | TYPES), max_size=30), st.booleans())
def test_no_message_fails(messages: list[dict[str, Any]], heard: bool) -> None:
    book = Book()
    for message in messages:
        if heard:
            book.hear("1-1", message)
        else:
            book.see(message)

    findings(book)
