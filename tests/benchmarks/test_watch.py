"""The study of `oomdoctor watch` on a few of its made-up series."""

from __future__ import annotations

import random

import pytest

from benchmarks.watch import KINDS, look, row

SEEDS = range(4)


@pytest.mark.parametrize("name", [name for name, (_, _, leaks) in KINDS.items() if leaks])
def test_a_leak_is_told_before_half_of_what_fits(name: str) -> None:
    make, judge, _ = KINDS[name]

    told = [look(make(random.Random(f"test {name} {seed}")), judge) for seed in SEEDS]

    assert all(one.alarm is not None and one.alarm < 0.5 for one in told)


@pytest.mark.parametrize("name", [name for name, (_, _, leaks) in KINDS.items() if not leaks])
def test_what_is_no_leak_raises_no_alarm(name: str) -> None:
    make, judge, _ = KINDS[name]

    told = [look(make(random.Random(f"test {name} {seed}")), judge) for seed in SEEDS]

    assert [one.alarm for one in told] == [None] * len(SEEDS)


def test_a_row_counts_alarms_and_notices() -> None:
    make, judge, leaks = KINDS["the same each step"]
    told = [look(make(random.Random(f"test row {seed}")), judge) for seed in SEEDS]

    assert row("x", told, leaks=leaks).startswith("| x | 4 of 4 | ")
