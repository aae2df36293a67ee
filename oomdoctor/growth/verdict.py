"""Which kind of growth the series of one process show, and whether it is time to act.

| kind | what tells it |
|---|---|
| device leak | what is allocated after each step rises |
| cache growth | what is reserved rises, what is allocated does not, and no new peak asks for it |
| fragmentation | the same, and pieces of segments that lie idle account for it |
| longest batch | what is reserved follows the highest peak so far, and nothing is kept |
| host leak | the floor of the process's memory on the host rises |
| card growth | all that one sees from outside is that the card fills |

A rise is an alarm once it has taken a share of the room that was there when it began: until then a
cache that fills looks the same. Of a cache that may end anywhere, one in ten goes on to fill all
room once it has taken a tenth of it; a leak always does. Below a hundredth it is not even a notice.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from oomdoctor.growth.course import Course, Growth, growth_of
from oomdoctor.growth.forecast import Forecast, Room, forecast
from oomdoctor.growth.points import seconds_each
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.growth.points import Point

MIB = 1 << 20
LEAST_DEVICE_BYTES = MIB
LEAST_HOST_BYTES = 16 * MIB
LEAST_HOST_SHARE = 0.01
SHARE = 0.10
LEAST_SHARE = 0.01
FEWEST_WINDOWS = 10
CARD_SHARE = 0.25
_UNBOUNDED_POINTS = 100
_UNBOUNDED_SHARE = 0.5
_FOLLOWS = 1.5
_IDLE_SHARE = 0.5
_NEW_PEAK = 0.02


class Kind(Enum):
    """What grows, or why it does not."""

    DEVICE_LEAK = "device-leak"
    HOST_LEAK = "host-leak"
    CACHE_GROWTH = "cache-growth"
    FRAGMENTATION = "fragmentation"
    CARD_GROWTH = "card-growth"
    LONGEST_BATCH = "longest-batch"
    PLATEAU = "plateau"
    STEADY = "steady"
    EARLY = "too-early"
    UNSURE = "unsure"


class Level(IntEnum):
    """Whether anybody has to look."""

    QUIET = 0
    NOTICE = 1
    ALARM = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one series tells: kind and level, the growth it is read from, and the forecast.

    `taken` is the share of the room at the beginning of the rise that is gone by now.
    """

    kind: Kind
    level: Level
    growth: Growth | None
    forecast: Forecast | None = None
    taken: float | None = None


def device_verdict(
    allocated: Sequence[Point],
    reserved: Sequence[Point],
    idle: Sequence[Point] = (),
    *,
    limit_bytes: int | None,
) -> Verdict:
    """Return the verdict on a process's memory on its card.

    The low of an allocated point is what is kept after the step and the high its peak; idle are the
    bytes of pieces of segments that cannot be given back. The limit is what the process may have.
    """
    kept = growth_of(allocated, least_bytes=LEAST_DEVICE_BYTES)
    if kept is None or kept.course is Course.EARLY:
        return Verdict(kind=Kind.EARLY, level=Level.QUIET, growth=kept)
    if kept.rises:
        return _leak(Kind.DEVICE_LEAK, allocated, kept, limit_bytes)
    held = growth_of(reserved, least_bytes=LEAST_DEVICE_BYTES)
    if held is not None and held.rises:
        return _cache(allocated, reserved, idle, held, limit_bytes)
    if _has_new_peak(allocated):
        return Verdict(kind=Kind.LONGEST_BATCH, level=Level.QUIET, growth=kept)
    return _calm(kept)


def host_verdict(points: Sequence[Point], *, limit_bytes: int | None) -> Verdict:
    """Return the verdict on memory of the host; the limit is what these processes may have."""
    base = min((one.low for one in points), default=0)
    least = max(LEAST_HOST_BYTES, round(LEAST_HOST_SHARE * base))
    growth = growth_of(points, least_bytes=least)
    if growth is None or growth.course is Course.EARLY:
        return Verdict(kind=Kind.EARLY, level=Level.QUIET, growth=growth)
    if not growth.rises:
        return _calm(growth)
    return _leak(Kind.HOST_LEAK, points, growth, limit_bytes)


def card_verdict(points: Sequence[Point], *, limit_bytes: int | None) -> Verdict:
    """Return the verdict on what processes have of a card, seen from outside."""
    growth = growth_of(points, least_bytes=LEAST_HOST_BYTES)
    if growth is None or growth.course is Course.EARLY:
        return Verdict(kind=Kind.EARLY, level=Level.QUIET, growth=growth)
    if not growth.rises:
        return _calm(growth)
    return _leak(Kind.CARD_GROWTH, points, growth, limit_bytes, share=CARD_SHARE)


def _leak(
    kind: Kind,
    points: Sequence[Point],
    growth: Growth,
    limit_bytes: int | None,
    *,
    share: float = SHARE,
) -> Verdict:
    if limit_bytes is None:
        grown = growth.rise / max(growth.first, 1)
        sure = len(points) >= _UNBOUNDED_POINTS and grown >= _UNBOUNDED_SHARE
        return Verdict(kind=kind, level=Level.ALARM if sure else Level.NOTICE, growth=growth)
    room = _room(points, growth, limit_bytes)
    taken = growth.rise / max(growth.rise + room.bytes, 1)
    sure = taken >= share and growth.windows >= FEWEST_WINDOWS
    return Verdict(
        kind=kind,
        level=Level.ALARM if sure else _notice(taken),
        growth=growth,
        forecast=forecast(growth, room, each=seconds_each(points)),
        taken=taken,
    )


def _notice(taken: float) -> Level:
    """Return the level of a rise that is no alarm: below a hundredth of the room it is quiet."""
    return Level.NOTICE if taken >= LEAST_SHARE else Level.QUIET


def _cache(
    allocated: Sequence[Point],
    reserved: Sequence[Point],
    idle: Sequence[Point],
    held: Growth,
    limit_bytes: int | None,
) -> Verdict:
    """Tell a cache that follows ever longer batches from one that grows of itself."""
    peaks = _records(allocated, since=held.since)
    if peaks and held.rise <= _FOLLOWS * (peaks[-1] - peaks[0]):
        return Verdict(kind=Kind.LONGEST_BATCH, level=Level.NOTICE, growth=held)
    pieces = growth_of(idle, least_bytes=LEAST_DEVICE_BYTES)
    torn = pieces is not None and pieces.rises and pieces.rise >= _IDLE_SHARE * held.rise
    kind = Kind.FRAGMENTATION if torn else Kind.CACHE_GROWTH
    if limit_bytes is None:
        return Verdict(kind=kind, level=Level.NOTICE, growth=held)
    room = _room(reserved, held, limit_bytes)
    taken = held.rise / max(held.rise + room.bytes, 1)
    return Verdict(
        kind=kind,
        level=_notice(taken),
        growth=held,
        forecast=forecast(held, room, each=seconds_each(reserved)),
        taken=taken,
    )


_CALM = {
    Course.LEVEL: Kind.STEADY,
    Course.TEETH: Kind.STEADY,
    Course.UNSURE: Kind.UNSURE,
}


def _calm(growth: Growth) -> Verdict:
    kind = _CALM.get(growth.course, Kind.PLATEAU)
    return Verdict(kind=kind, level=Level.QUIET, growth=growth)


def _room(points: Sequence[Point], growth: Growth, limit_bytes: int) -> Room:
    """Return what is left beside what is kept and what a step takes on top of that.

    Likely is that a step as greedy as the greediest of late decides. With steps as modest as the
    most modest one it goes well for longer; one still greedier, by as much again, ends it sooner.
    """
    above = [one.high - one.low for one in points]
    late = above[len(above) // 2 :]
    above.sort()
    free = limit_bytes - growth.last
    rooms = (2 * above[-1] - above[len(above) // 2], max(late), above[0])
    least, likely, most = (max(free - one, 0) for one in rooms)
    return Room(bytes=likely, least=least, most=max(most, likely))


def _records(points: Sequence[Point], *, since: float) -> list[int]:
    """Return the highest peak so far, at `since` and after each point behind it."""
    highest, found = 0, []
    for one in points:
        highest = max(highest, one.high)
        if one.at >= since:
            found.append(highest)
    return found


def _has_new_peak(points: Sequence[Point]) -> bool:
    """Say whether a step of the late half took more, on top of what is kept, than any before."""
    taken, middle = [one.high - one.low for one in points], len(points) // 2
    before, after = max(taken[:middle], default=0), max(taken[middle:], default=0)
    return before > 0 and after > before * (1 + _NEW_PEAK)
