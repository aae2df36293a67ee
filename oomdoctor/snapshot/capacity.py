"""How much a process could have had, as far as a trace tells: when a request failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.snapshot.events import GIVEN_BACK, TAKEN

if TYPE_CHECKING:
    from oomdoctor.snapshot.shapes import Device


def capacity_of(device: Device) -> int | None:
    """Return what was reserved and free at the latest failed request; None where none failed."""
    events = device.events
    failed = events.last_failed()
    if failed is None:
        return None
    reserved = sum(one.size for one in device.segments)
    reserved -= sum(events.sizes[at] for at in events.of_kinds(*TAKEN) if at > failed)
    reserved += sum(events.sizes[at] for at in events.of_kinds(*GIVEN_BACK) if at > failed)
    return reserved + events.addresses[failed]
