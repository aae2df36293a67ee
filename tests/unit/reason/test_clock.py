"""The clock that several logs share."""

from __future__ import annotations

from oomdoctor.evidence.instant import instant_of
from oomdoctor.reason.clock import Clock, Told


def clock(**stamps: str) -> Clock:
    told = {name: instant_of(stamp) for name, stamp in stamps.items()}
    return Clock({name: Told([one]) for name, one in told.items() if one is not None})


def order(**stamps: str) -> list[str]:
    shared = clock(**stamps)
    times = {name: shared.when(name, stamp) for name, stamp in stamps.items()}
    return sorted(times, key=lambda name: times[name] or 0.0)


def test_a_missing_year_is_that_of_the_others() -> None:
    found = order(a="2026-11-30 08:30:45", b="1130 08:30:44.9", c="Nov 30 08:30:46")

    assert found == ["b", "a", "c"]


def test_december_is_before_january() -> None:
    assert order(a="2026-01-01 00:00:05", b="1231 23:59:59") == ["b", "a"]
    assert order(a="0101 00:00:05", b="1231 23:59:59") == ["b", "a"]


def test_a_time_of_day_is_on_the_day_of_the_others() -> None:
    assert order(a="2026-11-30 08:30:45", b="08:30:44") == ["b", "a"]
    assert order(a="2026-11-30 00:00:05", b="23:59:59") == ["b", "a"]


def test_midnight_is_passed_once() -> None:
    assert order(a="23:59:58", b="00:00:03") == ["a", "b"]


def test_zones_compare_and_a_missing_one_is_told() -> None:
    shared = clock(a="2026-11-30T00:30:45Z", b="2026-11-30 08:30:47")

    times = [
        shared.when("a", "2026-11-30T00:30:45Z"),
        shared.when("b", "2026-11-30 08:30:47"),
    ]

    assert times[0] is not None
    assert [times[0], times[0] + 2] == times
    assert shared.notes == ["b: its time stamps name no zone; they were taken to be +8 h from UTC"]


def test_two_named_zones_need_no_guess() -> None:
    assert order(a="2026-11-30T08:30:45Z", b="2026-11-30T09:30:44+01:00") == ["b", "a"]


def test_seconds_since_boot_compare_where_the_boot_is_known() -> None:
    boots = instant_of("2026-11-30 08:00:00")
    shared = Clock({"dmesg": Told([], boots), "a": Told([])})

    assert shared.when("dmesg", "[60.500000]") == shared.when("dmesg", "2026-11-30 08:01:00.5")
    assert shared.when("a", "[60.500000]") is None
