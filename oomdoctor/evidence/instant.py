"""Time stamps of every usual kind as numbers that can be compared.

```
2026-11-30T08:30:45.123Z      2026-11-30 08:30:45,123      2026-11-30_08:30:45 (torchrun)
1130 08:30:45.123456 (glog)   Mon Nov 30 08:30:45 2026     Nov 30 08:30:45 (syslog)
11-30 08:30:45 (vLLM)         12345.678901 (since boot)    1796027445.25 (epoch)
*** STEP 7.0 ON gpu01 CANCELLED AT 2026-11-30T08:30:45 ***
```
A stamp says what it says: the year, the date or the zone may be missing, and seconds since boot
compare only with others of the same boot. `reason/clock.py` finds what they have in common.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from oomdoctor.record import NamedTuple

DAY = 86400
UNKNOWN_YEAR = 2000
"""Stands for a year that no stamp says; it has a 29th of February."""
_EPOCH_FROM = 1_000_000_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Instant(NamedTuple):
    """Seconds on a clock: `date` since 1970, `yearless` likewise, `day` since midnight, `boot`.

    `zone` is the offset from UTC in seconds where the stamp says it; `seconds` are local to it.
    """

    seconds: float
    clock: str
    zone: int | None = None


@lru_cache(maxsize=4096)
def instant_of(stamp: str) -> Instant | None:
    """Return what a stamp that was taken off a line says; None where it says nothing."""
    text = stamp.strip().strip("[]").strip()
    number = _number().fullmatch(text)
    if number is not None:
        return _counted(float(text))
    found = _stamp().search(text)
    return None if found is None else _read(found)


def spoken_instant(text: str) -> Instant | None:
    """Return the time that the words of a line give: torchrun, Slurm, nvidia-smi."""
    found = _spoken().search(text)
    return None if found is None else instant_of(next(filter(None, found.groups())))


def _counted(value: float) -> Instant:
    """Tell seconds since 1970 from seconds since boot; milliseconds are told by their size."""
    if value >= _EPOCH_FROM * 1000:
        value /= 1000
    if value >= _EPOCH_FROM:
        return Instant(value, "date", 0)
    return Instant(value, "boot")


def _read(found: re.Match[str]) -> Instant | None:
    hour, minute, second = int(found["h"]), int(found["m"]), int(found["s"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].strip() == "PM" else 0)
    if hour > 24 or minute > 59 or second > 60:
        return None
    seconds = hour * 3600 + minute * 60 + second + float(f"0.{found['part'] or 0}")
    date = _date(found)
    zone = _zone(found["zone"])
    if date is None:
        return Instant(seconds, "day", zone)
    year, month, day = date
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    clock = "date" if year is not None else "yearless"
    return Instant(_days(year or UNKNOWN_YEAR, month, day) * DAY + seconds, clock, zone)


def _date(found: re.Match[str]) -> tuple[int | None, int, int] | None:
    if found["iso"]:
        return int(found["iso"][:4]), int(found["iso"][5:7]), int(found["iso"][8:10])
    if found["glog"]:
        digits = found["glog"].zfill(4)
        year = int(digits[:4]) if len(digits) == 8 else None
        return year, int(digits[-4:-2]), int(digits[-2:])
    if found["named"]:
        said = found["year"] or found["late"]
        return (
            int(said) if said else None,
            _MONTHS.index(found["named"].lower()) + 1,
            int(found["dd"]),
        )
    if found["short"]:
        return _short(re.split(r"[-/]", found["short"]))
    return None


def _short(parts: list[str]) -> tuple[int | None, int, int]:
    """Read `11-30`, `11/30`, `11/30/2026`, `30/11/2026`, `26/11/30`."""
    one, two = int(parts[0]), int(parts[1])
    if len(parts) == 2:
        return None, one, two
    last = int(parts[2])
    if len(parts[2]) == 2 and one > 12 and last <= 31:
        return 2000 + one, two, last
    year = last if last > 99 else 2000 + last
    return (year, two, one) if one > 12 else (year, one, two)


def _zone(text: str | None) -> int | None:
    word = (text or "").strip()
    if not word:
        return None
    if word in ("Z", "UTC", "GMT"):
        return 0
    digits = word[1:].replace(":", "")
    if word[0] not in "+-" or not digits.isdecimal():
        return None
    size = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
    return size if word[0] == "+" else -size


def _days(year: int, month: int, day: int) -> int:
    """Count the days since 1970-01-01 in the Gregorian calendar."""
    shifted = year - (month <= 2)
    era_year = shifted % 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = era_year * 365 + era_year // 4 - era_year // 100 + day_of_year
    return shifted // 400 * 146097 + day_of_era - 719468


@cache
def _number() -> re.Pattern[str]:
    return re.compile(r"\d{1,13}(?:\.\d{1,9})?")


@cache
def _stamp() -> re.Pattern[str]:
    months = "|".join(_MONTHS)
    return re.compile(
        r"(?:(?:(?P<iso>\d{4}[-/.]\d\d[-/.]\d\d)|(?P<glog>\d{8}|\d{3,4})"
        rf"|(?P<named>{months})[a-z]{{0,6}} +(?P<dd>\d{{1,2}})(?:,? (?P<year>\d{{4}}))?"
        r"|(?P<short>\d\d[-/]\d\d(?:[-/]\d{2,4})?))[T _,]{1,2})?"
        r"(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)(?:[.,:](?P<part>\d{1,9}))?(?P<half> ?[AP]M)?"
        r"(?P<zone>Z| ?[+-]\d\d:?\d\d| UTC| GMT| [A-Z]{3,4}(?= \d{4}))?(?: (?P<late>\d{4}))?",
        re.IGNORECASE,
    )


@cache
def _spoken() -> re.Pattern[str]:
    iso = r"\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    return re.compile(
        rf"^\s*time\s{{1,12}}: ({iso})|CANCELLED AT ({iso})"
        r"|^([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: [A-Z]{3,4})? \d{4})\s*$"
    )
