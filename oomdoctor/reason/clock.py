"""The clock that several logs share: which year, which day and which zone their stamps mean.

A stamp without a year takes the year of those that have one, a time of day their date. A log with
a zone and one without are brought together by how they end; seconds since boot compare with other
clocks only where a line of the log gives both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.instant import DAY, instant_of
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.evidence.instant import Instant

HALF_HOUR = 1800
MOST_ZONE = 14 * 3600
_HALF_YEAR = 183 * DAY
_UNKNOWN_START = 10957 * DAY
"""The first of January of the year that stands for an unknown one."""


class Told(NamedTuple):
    """What one input says of time: its instants, and when its machine booted."""

    instants: Sequence[Instant]
    boots: Instant | None = None


class Clock:
    """Turns stamps of different kinds into seconds that compare."""

    def __init__(self, inputs: Mapping[str, Told]) -> None:
        """Learn year, day and zones from what all inputs say."""
        said = [one for told in inputs.values() for one in _with_boots(told)]
        self.notes: list[str] = []
        self._boots = {name: told.boots for name, told in inputs.items()}
        dated = [one.seconds for one in said if one.clock == "date"]
        self._latest = max(dated) if dated else None
        yearless = [one.seconds for one in said if one.clock == "yearless"]
        self._wraps = bool(yearless) and max(yearless) - min(yearless) > _HALF_YEAR
        placed = [when for one in said if (when := self._on_calendar(one)) is not None]
        self._day = max(placed) // DAY * DAY if placed else 0
        days = [one.seconds for one in said if one.clock == "day"]
        self._midnight = bool(days) and max(days) - min(days) > DAY / 2
        self._late = max(placed) % DAY if placed else None
        self._zones = self._shifts(inputs)

    def when(self, artifact: str, stamp: str | None) -> float | None:
        """Return the time of a stamp of one input, None where it compares with nothing."""
        instant = instant_of(stamp) if stamp else None
        return None if instant is None else self.time_of(artifact, instant)

    def time_of(self, artifact: str, instant: Instant) -> float | None:
        """Return the time of an instant of one input."""
        boots = self._boots.get(artifact)
        if instant.clock == "boot" and boots is not None:
            instant = boots._replace(seconds=boots.seconds + instant.seconds)
        seconds = self._on_some_day(instant)
        if seconds is None:
            return None
        if instant.zone is not None:
            return seconds - instant.zone
        return seconds - self._zones.get(artifact, 0)

    def _on_calendar(self, instant: Instant) -> float | None:
        if instant.clock == "date":
            return instant.seconds
        if instant.clock != "yearless":
            return None
        if self._latest is None:
            return instant.seconds + (366 * DAY if self._is_next_year(instant) else 0)
        year = _year_of(self._latest)
        seconds = with_year(instant.seconds, year)
        return seconds if seconds <= self._latest + _HALF_YEAR else with_year(seconds, year - 1)

    def _is_next_year(self, instant: Instant) -> bool:
        return self._wraps and instant.seconds - _UNKNOWN_START < _HALF_YEAR

    def _on_some_day(self, instant: Instant) -> float | None:
        """Put an instant on the calendar; a time of day belongs to a day that is known."""
        if instant.clock == "day":
            return self._of_day(instant.seconds)
        return self._on_calendar(instant)

    def _of_day(self, seconds: float) -> float:
        """Put a time of day on the last day that the inputs name."""
        if self._late is not None and seconds > self._late + DAY / 2:
            return self._day - DAY + seconds
        after_midnight = self._late is None and self._midnight and seconds < DAY / 2
        return self._day + seconds + (DAY if after_midnight else 0)

    def _shifts(self, inputs: Mapping[str, Told]) -> dict[str, float]:
        """Return how far the clock of each input without a zone is ahead of UTC."""
        zoned: list[float] = []
        offsets: set[int] = set()
        plain: dict[str, float] = {}
        for name, told in inputs.items():
            for one in _with_boots(told):
                seconds = self._on_some_day(one)
                if seconds is None:
                    continue
                if one.zone is None:
                    plain[name] = max(seconds, plain.get(name, seconds))
                else:
                    zoned.append(seconds - one.zone)
                    offsets.add(one.zone)
        return self._compared(plain, max(zoned), offsets) if zoned and plain else {}

    def _compared(
        self, plain: Mapping[str, float], end: float, offsets: Iterable[int]
    ) -> dict[str, float]:
        shifts: dict[str, float] = {}
        for name, last in plain.items():
            ahead = last - end
            near = min((0, *offsets), key=lambda offset: abs(ahead - offset))
            if abs(ahead - near) > HALF_HOUR and abs(ahead) <= MOST_ZONE:
                near = round(ahead / HALF_HOUR) * HALF_HOUR
            shifts[name] = near
            if near:
                self.notes.append(
                    f"{name}: its time stamps name no zone; they were taken to be"
                    f" {near / 3600:+g} h from UTC"
                )
        return shifts


def with_year(seconds: float, year: int) -> float:
    """Return the same day and time of the unknown year, or of another one, in `year`."""
    from datetime import datetime, timedelta, timezone

    origin = datetime(1970, 1, 1, tzinfo=timezone.utc)
    then = origin + timedelta(seconds=seconds)
    try:
        moved = then.replace(year=year)
    except ValueError:
        moved = then.replace(year=year, day=28)
    return (moved - origin).total_seconds()


def _year_of(seconds: float) -> int:
    return int(1970 + seconds // (365.2425 * DAY))


def _with_boots(told: Told) -> list[Instant]:
    """Return the instants that a calendar can take, those since boot where the boot is known."""
    boots = told.boots
    placed = [one for one in told.instants if one.clock != "boot"]
    if boots is not None:
        placed += [
            boots._replace(seconds=boots.seconds + one.seconds)
            for one in told.instants
            if one.clock == "boot"
        ]
    return placed
