"""Exports hold what a snapshot holds, and nothing in them acts on who opens them."""

from __future__ import annotations

import csv
import io

import pytest

from oomdoctor.snapshot.balance import balance_at
from oomdoctor.snapshot.exporting import blocks_csv, folded
from oomdoctor.snapshot.moments import moments_of
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.snapshot.planted import MIB, Recorded


def test_a_name_that_a_spreadsheet_takes_for_a_formula_is_quoted() -> None:
    run = Recorded()
    run.alloc(MIB, (("=HYPERLINK(1).py", 3, "@run"),))
    snapshot = snapshot_of(run.snapshot())

    text = blocks_csv(moments_of(snapshot, "end"), snapshot.stacks)

    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["file"], row["function"]) == ("'=HYPERLINK(1).py", "'@run")


def test_signs_of_the_format_do_not_part_a_folded_stack() -> None:
    run = Recorded()
    run.alloc(MIB, (("a;b.py", 3, "f;g"),))
    snapshot = snapshot_of(run.snapshot())
    (moment,) = moments_of(snapshot, "end")

    text = folded([(0, balance_at(moment.lives, moment.event, snapshot.stacks))], snapshot.stacks)

    assert text == f"GPU 0;f,g (a,b.py:3) {MIB}\n"


@pytest.mark.parametrize(("at", "event"), [("end", 2), ("0", 0), ("1", 1), ("99", 2), ("peak", 2)])
def test_a_moment_is_the_event_before_which_is_looked(at: str, event: int) -> None:
    run = Recorded()
    run.alloc(MIB)

    (moment,) = moments_of(snapshot_of(run.snapshot()), at)

    assert moment.event == event
