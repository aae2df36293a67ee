"""Rows of ps and top tell which program holds main memory."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import host_processes
from tests.unit.evidence.tables_documents import GIB, read_raw, read_text, values


@pytest.mark.parametrize("name", ["ps_aux.txt", "top.txt"])
def test_the_program_that_holds_most_is_summed_up(name: str) -> None:
    found = values(read_raw(host_processes, "host", name))
    assert found == {
        "host.tasks_name": "python",
        "host.tasks": 2,
        "host.tasks_resident": 30 * GIB,
        "host.tasks_largest": 15 * GIB,
    }


def test_a_row_of_ps_without_its_head_counts() -> None:
    text = (
        "ada  40110 99.2 11.9 81220012 15728640 pts/3 Rl  12:06  15:19 /opt/env/bin/python -u a.py"
    )
    assert values(read_text(host_processes, text))["host.tasks_resident"] == 15 * GIB


def test_columns_in_any_order_are_told_by_their_head() -> None:
    text = "  RSS   PID COMMAND\n1048576  4411 python3\n   100     1 init"
    assert values(read_text(host_processes, text))["host.tasks_largest"] == GIB


def test_small_programs_say_nothing() -> None:
    assert read_text(host_processes, "  RSS   PID COMMAND\n  2000  4411 bash").facts == ()
