"""The moment of a recorded run that is asked for: the peak, a failed request, the end, an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, UsageError
from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.lives import curve_of, lives_of

if TYPE_CHECKING:
    from oomdoctor.snapshot.lives import Lives
    from oomdoctor.snapshot.shapes import Device, Snapshot

PEAK, FAILURE, END = "peak", "failure", "end"


class Moment(NamedTuple):
    """A device with its blocks, and the number of the event before which it is looked at."""

    device: Device
    lives: Lives
    event: int


def moments_of(snapshot: Snapshot, at: str, device: int | None = None) -> tuple[Moment, ...]:
    """Return the moment on each card, or on one; InputError where there is none."""
    found = []
    for one in snapshot.devices:
        if device is None or one.number == device:
            lives = lives_of(one)
            event = _event(one, lives, at)
            if event is not None:
                found.append(Moment(one, lives, event))
    if found or (not snapshot.devices and device is None):
        return tuple(found)
    numbers = [one.number for one in snapshot.devices]
    if device is not None and device not in numbers:
        listed = ", ".join(map(str, numbers)) or "none"
        raise InputError(f"the snapshot says nothing of GPU {device}; it has {listed}")
    raise InputError(f"no request failed in the trace, so there is no moment {FAILURE!r}")


def _event(device: Device, lives: Lives, at: str) -> int | None:
    count = len(device.events)
    if at == PEAK:
        curve = curve_of(lives, count)
        return curve.index(max(curve))
    if at == END:
        return count
    if at == FAILURE:
        return device.events.last_failed()
    if at.isdecimal() and len(at) < 12:
        return min(int(at), count)
    raise UsageError(
        f"{at!r} is no moment", hint=f"say {PEAK}, {FAILURE}, {END}, or the number of an event"
    )
