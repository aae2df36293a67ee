"""Processes that a message lists stand in for the rows of a table that is not given."""

from __future__ import annotations

from oomdoctor.facts.derive import derive
from tests.unit.facts.stated import GIB, book

TWINS: dict[str, bool | float | str] = {
    "oom.listed_processes": 7,
    "oom.small_twins": 7,
    "oom.small_twins_bytes": 7 * GIB,
}


def test_small_equal_processes_stand_for_small_rows() -> None:
    made = derive(book(TWINS))

    assert made.value("gpu.small_rows") == 7
    assert made.value("gpu.small_rows_bytes") == 7 * GIB


def test_a_table_of_the_card_outranks_the_list_of_a_message() -> None:
    made = derive(book({**TWINS, "gpu.process_rows": 2}))

    assert made.value("gpu.small_rows") is None
    assert made.value("gpu.small_rows_bytes") is None


def test_a_list_without_such_processes_has_none() -> None:
    made = derive(book({"oom.listed_processes": 2}))

    assert made.value("oom.small_twins") == 0
    assert made.value("gpu.small_rows") is None
