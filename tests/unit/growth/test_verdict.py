"""Which kind of growth it is, whether it is an alarm, and when memory will be full."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from oomdoctor.growth.points import Point, Track, seconds_each, windows
from oomdoctor.growth.verdict import Kind, Level, card_verdict, device_verdict, host_verdict
from tests.unit.growth.made import GIB, MIB, noise, series

if TYPE_CHECKING:
    from collections.abc import Callable

SOME = noise(20 * MIB)
PEAKS = noise(2 * GIB, seed=5)
LIMIT = 20 * GIB


def leak(count: int = 200) -> list[Point]:
    return series(
        lambda n: GIB + 20 * MIB * n, lambda n: 3 * GIB + 20 * MIB * n + PEAKS(n) / 2, count=count
    )


def test_what_is_kept_on_the_card_is_a_device_leak() -> None:
    found = device_verdict(leak(), [], limit_bytes=LIMIT)

    assert (found.kind, found.level) == (Kind.DEVICE_LEAK, Level.ALARM)


def test_the_forecast_tells_the_step_at_which_a_peak_does_not_fit_any_more() -> None:
    found = device_verdict(leak(), [], limit_bytes=LIMIT)
    full = next(one.at for one in leak(2000) if one.high > LIMIT)

    assert found.forecast is not None
    assert found.forecast.step == pytest.approx(full, abs=30)
    assert found.forecast.last is not None
    assert found.forecast.first <= full - 200 <= found.forecast.last
    assert found.forecast.seconds == pytest.approx(found.forecast.left * 0.5)


def test_a_rise_far_from_the_limit_is_a_notice() -> None:
    found = device_verdict(leak(), [], limit_bytes=100 * GIB)

    assert (found.kind, found.level) == (Kind.DEVICE_LEAK, Level.NOTICE)
    assert found.taken is not None
    assert found.taken < 0.1


def test_a_rise_that_has_taken_less_than_a_hundredth_of_the_room_is_quiet() -> None:
    found = device_verdict(leak(), [], limit_bytes=900 * GIB)

    assert (found.kind, found.level) == (Kind.DEVICE_LEAK, Level.QUIET)
    assert found.forecast is not None


def test_twenty_steps_are_enough_where_they_take_much() -> None:
    points = series(lambda n: GIB + 400 * MIB * n, count=20)

    assert device_verdict(points, [], limit_bytes=LIMIT).level is Level.ALARM
    assert device_verdict(points, [], limit_bytes=8 * LIMIT).level is Level.NOTICE


def test_without_a_limit_only_a_long_rise_is_an_alarm() -> None:
    assert device_verdict(leak(60), [], limit_bytes=None).level is Level.NOTICE
    assert device_verdict(leak(200), [], limit_bytes=None).level is Level.ALARM


def test_longer_batches_are_no_leak() -> None:
    sizes = sorted(PEAKS(n) for n in range(400))
    longer = series(lambda n: GIB + SOME(n), lambda n: 2 * GIB + sizes[n] * 3)
    reserved = series(lambda n: 2 * GIB + sizes[n] * 3)

    found = device_verdict(longer, reserved, limit_bytes=LIMIT)

    assert found.kind is Kind.LONGEST_BATCH
    assert found.level < Level.ALARM


def test_reserved_that_rises_alone_is_a_cache_that_grows() -> None:
    steady = series(lambda n: GIB + SOME(n), lambda n: 3 * GIB + SOME(n))
    reserved = series(lambda n: 4 * GIB + 10 * MIB * n)

    found = device_verdict(steady, reserved, limit_bytes=LIMIT)

    assert (found.kind, found.level) == (Kind.CACHE_GROWTH, Level.NOTICE)
    assert found.forecast is not None


def test_it_is_fragmentation_where_idle_pieces_account_for_it() -> None:
    steady = series(lambda n: GIB + SOME(n), lambda n: 3 * GIB + SOME(n))
    reserved = series(lambda n: 4 * GIB + 10 * MIB * n)
    idle = series(lambda n: MIB + 9 * MIB * n)

    assert device_verdict(steady, reserved, idle, limit_bytes=LIMIT).kind is Kind.FRAGMENTATION


@pytest.mark.parametrize(
    ("low", "kind"),
    [(lambda n: GIB + SOME(n), Kind.STEADY), (lambda n: GIB + GIB * (n > 30), Kind.PLATEAU)],
)
def test_what_does_not_rise_is_quiet(low: Callable[[int], float], kind: Kind) -> None:
    found = device_verdict(series(low), [], limit_bytes=LIMIT)

    assert (found.kind, found.level) == (kind, Level.QUIET)


def test_no_points_are_too_early() -> None:
    assert device_verdict([], [], limit_bytes=LIMIT).kind is Kind.EARLY
    assert host_verdict([], limit_bytes=LIMIT).kind is Kind.EARLY
    assert card_verdict([], limit_bytes=LIMIT).kind is Kind.EARLY


def test_a_list_on_the_host_is_a_host_leak() -> None:
    found = host_verdict(series(lambda n: GIB + 20 * MIB * n + SOME(n)), limit_bytes=LIMIT)

    assert (found.kind, found.level) == (Kind.HOST_LEAK, Level.ALARM)


def test_a_rise_of_a_hundredth_of_host_memory_is_none() -> None:
    found = host_verdict(series(lambda n: 80 * GIB + 2 * MIB * n), limit_bytes=100 * GIB)

    assert found.kind is Kind.STEADY


def test_a_card_from_outside_can_only_be_said_to_fill() -> None:
    found = card_verdict(series(lambda n: GIB + 50 * MIB * n), limit_bytes=LIMIT)

    assert (found.kind, found.level) == (Kind.CARD_GROWTH, Level.ALARM)


def test_a_track_keeps_floors_and_peaks_when_it_puts_points_together() -> None:
    track = Track(most=64)
    for number in range(1, 5001):
        track.add(number, number, 100 + number % 7, 1000 + number)

    assert len(track.points) < 64
    assert min(one.low for one in track.points) == 100
    assert track.last == Point(5000, 5000, 102, 6000)
    widths = {after.at - before.at for before, after in pairwise(track.points)}
    assert len(widths) == 1


def test_a_step_number_that_comes_again_counts_on() -> None:
    track = Track()
    for number in (1, 2, 3, 1, 2):
        track.add(number, number, 5)

    assert [one.at for one in track.points] == [1, 2, 3, 4, 5]


def test_a_window_stands_where_its_lowest_value_is() -> None:
    points = series(lambda n: 1000 - n if n < 50 else n, count=101)

    found = windows(points)

    assert [one.at for one in found if one.low == 50] == [50]
    assert all(one in points or one.high > one.low for one in found)
    assert len(found) <= 48


def test_seconds_are_those_of_late() -> None:
    points = [Point(n, n * 9.0 if n < 50 else 450 + (n - 50) * 2.0, 1, 1) for n in range(1, 200)]

    assert seconds_each(points) == 2.0
