"""Time stamps of every usual kind."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from oomdoctor.evidence.instant import UNKNOWN_YEAR, instant_of, spoken_instant


def seconds(*date: int) -> float:
    return datetime(*date, tzinfo=timezone.utc).timestamp()  # type: ignore[misc,arg-type] - parts


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-11-30 08:30:45",
        "2026-11-30_08:30:45",
        "2026/11/30 08:30:45",
        "20261130 08:30:45",
        "Mon Nov 30 08:30:45 2026",
        "11/30/2026 08:30:45 AM",
        "30/11/2026 08:30:45",
        "26/11/30 08:30:45",
    ],
)
def test_a_stamp_with_a_year_is_a_date(stamp: str) -> None:
    found = instant_of(stamp)

    assert found is not None
    assert (found.clock, found.zone) == ("date", None)
    assert seconds(2026, 11, 30, 8, 30, 45) == found.seconds


@pytest.mark.parametrize(
    "stamp", ["1130 08:30:45", "Nov 30 08:30:45", "11-30 08:30:45", "11/30 08:30:45"]
)
def test_a_stamp_without_a_year_says_so(stamp: str) -> None:
    found = instant_of(stamp)

    assert found is not None
    assert found.clock == "yearless"
    assert seconds(UNKNOWN_YEAR, 11, 30, 8, 30, 45) == found.seconds


def test_a_month_of_one_digit_is_read() -> None:
    found = instant_of("102 10:00:00.5")

    assert found is not None
    assert seconds(UNKNOWN_YEAR, 1, 2, 10) + 0.5 == found.seconds


@pytest.mark.parametrize(
    ("stamp", "zone"),
    [
        ("2026-11-30T08:30:45Z", 0),
        ("2026-11-30T08:30:45+08:00", 28800),
        ("2026-11-30T08:30:45.5-0330", -12600),
        ("Mon Nov 30 08:30:45 UTC 2026", 0),
    ],
)
def test_a_zone_is_kept(stamp: str, zone: int) -> None:
    found = instant_of(stamp)

    assert found is not None
    assert zone == found.zone


def test_seconds_since_boot_and_since_1970_are_told_apart() -> None:
    boot, epoch, milli = map(instant_of, ("12345.678901", "1796027445.25", "1796027445250"))

    assert boot is not None
    assert epoch is not None
    assert milli is not None
    assert (boot.clock, boot.seconds) == ("boot", 12345.678901)
    assert (epoch.clock, epoch.seconds) == ("date", 1796027445.25)
    assert epoch == milli


def test_an_afternoon_of_twelve_hours_is_read() -> None:
    found = instant_of("01:02:03 PM")

    assert found is not None
    assert (found.clock, found.seconds) == ("day", 13 * 3600 + 123)


@pytest.mark.parametrize("text", ["", "step 4", "99:99:99", "2026-13-40 08:30:45"])
def test_what_is_no_time_gives_none(text: str) -> None:
    assert instant_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "  time      : 2026-11-30_08:30:45",
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-30T08:30:45 ***",
        "Mon Nov 30 08:30:45 2026       ",
    ],
)
def test_a_line_that_tells_the_time_in_words_is_read(text: str) -> None:
    found = spoken_instant(text)

    assert found is not None
    assert seconds(2026, 11, 30, 8, 30, 45) == found.seconds


def test_other_lines_tell_no_time() -> None:
    assert spoken_instant("time per step: 0.4 s") is None
