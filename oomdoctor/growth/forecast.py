"""When memory will be full, as a step and as seconds from now, each with an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from oomdoctor.growth.course import Growth


class Room(NamedTuple):
    """Bytes that are left for what grows: likely, at least and at most."""

    bytes: int
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left until memory is full, in steps and in seconds from now.

    `last` is None where the slope may be so small that it never comes to that; seconds are None
    where nobody knows how long a step takes. `now` is the step at which this was said.
    """

    now: float
    left: float
    first: float
    last: float | None
    seconds_each: float | None
    room_bytes: int

    @property
    def seconds(self) -> float | None:
        """Return the seconds from now."""
        return None if self.seconds_each is None else self.left * self.seconds_each

    @property
    def step(self) -> float:
        """Return the step at which memory will be full."""
        return self.now + self.left


def forecast(growth: Growth, room: Room, *, each: float | None) -> Forecast | None:
    """Return when the room will have been filled; None where nothing rises."""
    if not growth.rises or growth.slope <= 0:
        return None
    return Forecast(
        now=growth.until,
        left=room.bytes / growth.slope,
        first=room.least / growth.high if growth.high > 0 else 0.0,
        last=room.most / growth.low if growth.low > 0 else None,
        seconds_each=each,
        room_bytes=room.bytes,
    )
