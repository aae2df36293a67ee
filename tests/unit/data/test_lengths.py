"""What a histogram of lengths says is what the rows themselves say."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.data.lengths import Lengths
from oomdoctor.data.packing import best_fit, wrapped
from oomdoctor.data.padding import strategies

ROWS = st.lists(st.integers(1, 60), min_size=1, max_size=60)


def of(rows: list[int]) -> Lengths:
    return Lengths(Counter(rows))


def test_quantiles_are_lengths_that_a_share_does_not_exceed() -> None:
    lengths = of([1, 2, 3, 4, 5, 6, 7, 8, 9, 100])

    found = [lengths.quantile(share) for share in (0.0, 0.1, 0.5, 0.9, 0.91, 1.0)]

    assert found == [1, 1, 5, 9, 100, 100]


@given(ROWS, st.floats(0, 1))
def test_a_quantile_is_the_least_such_length(rows: list[int], share: float) -> None:
    found = of(rows).quantile(share)

    assert sum(row <= found for row in rows) >= share * len(rows) - 1e-9
    assert sum(row < found for row in rows) < max(1, share * len(rows) + 1e-9)


def test_what_is_over_the_limit_is_counted_and_cut() -> None:
    lengths = of([3, 5, 5, 9])

    assert lengths.over(5) == (1, 4)
    assert lengths.over(4) == (3, 7)
    assert lengths.cut_at(4).items == [(3, 1), (4, 3)]


@pytest.mark.parametrize("batch", [1, 2, 3, 5])
def test_the_longest_of_random_batches_is_the_mean_over_all_of_them(batch: int) -> None:
    rows = [3, 3, 8, 1, 20]

    expected = mean(max(chosen) for chosen in combinations(rows, batch))

    assert expected == pytest.approx(of(rows).expected_longest(batch))


def test_half_of_all_batches_stay_within_the_median_one() -> None:
    rows = [1, 2, 3, 4, 50]
    longest = sorted(max(chosen) for chosen in combinations(rows, 2))

    assert longest[len(longest) // 2] == 50 or of(rows).longest_quantile(2, 0.5) == 4
    assert of(rows).longest_quantile(2, 0.6) == 4
    assert of(rows).longest_quantile(2, 0.61) == 50


@given(ROWS, st.integers(1, 9))
def test_sorted_batches_pad_to_their_longest_member(rows: list[int], batch: int) -> None:
    ordered = sorted(rows, reverse=True)
    cut = [ordered[at : at + batch] for at in range(0, len(ordered), batch)]

    expected = sum(len(one) * one[0] for one in cut)

    assert expected == of(rows).sorted_tokens(batch)


@given(ROWS, st.integers(1, 70))
def test_packing_a_histogram_is_packing_row_by_row(rows: list[int], capacity: int) -> None:
    cut = [min(row, capacity) for row in rows]

    packed = best_fit(of(rows), capacity)

    assert len(row_by_row(cut, capacity)) == packed.rows
    assert sum(cut) == packed.tokens
    assert 0 < packed.efficiency <= 1


def row_by_row(rows: list[int], capacity: int) -> list[int]:
    """Best-fit decreasing as it is defined; returns the room left in each bin."""
    rooms: list[int] = []
    for row in sorted(rows, reverse=True):
        fitting = [room for room in rooms if room >= row]
        if fitting:
            rooms.remove(min(fitting))
            rooms.append(min(fitting) - row)
        else:
            rooms.append(capacity - row)
    return rooms


def test_wrapping_loses_nothing_and_cuts_at_most_once_per_row() -> None:
    packed = wrapped(of([7, 7, 7]), 10)

    assert (packed.rows, packed.tokens, packed.cut_rows) == (3, 21, 2)
    assert packed.efficiency == pytest.approx(0.7)


def test_each_strategy_pads_as_it_says() -> None:
    found = strategies(of([10, 10, 20, 20]), batch=2, limit=32, in_force="longest")

    computed = {one.key: one.computed for one in found}
    # of the six pairs one has 10 as its longest, five have 20
    assert computed == {
        "max_length": 128,
        "longest": round(4 * (10 + 5 * 20) / 6),
        "multiple_of_8": round(4 * (16 + 5 * 24) / 6),
        "by_length": 60,
    }
    assert [one.key for one in found if one.in_force] == ["longest"]
    assert next(one.waste for one in found if one.key == "max_length") == pytest.approx(68 / 128)


@given(ROWS)
def test_bars_hold_every_row_once(rows: list[int]) -> None:
    bars = of(rows).bars(5)

    assert len(bars) <= 5
    assert len(rows) == sum(bar.number for bar in bars)
    for bar in bars:
        assert sum(bar.low <= row <= bar.high for row in rows) == bar.number


def test_few_rows_far_away_share_the_last_bar() -> None:
    bars = of([10] * 500 + [100_000]).bars(20)

    assert bars[-1].high == 100_000
    assert bars[-1].number == 1
    assert bars[0].high < 100


def test_no_rows_give_no_bars_and_no_lengths() -> None:
    nothing = of([])

    assert (nothing.bars(), nothing.longest, nothing.count, nothing.quantile(0.5)) == ((), 0, 0, 0)


def test_lengths_that_no_row_has_share_a_bar() -> None:
    bars = of([1] * 9 + [95]).bars(10)

    assert [bar.number for bar in bars] == [9, 0, 1]
    assert bars[1].low == bars[0].high + 1
    assert bars[1].high == bars[2].low - 1
