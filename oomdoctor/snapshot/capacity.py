"""How much a process could have had, as far as a trace tells: when a request failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.snapshot.shapes import Device

TAKEN = ("segment_alloc", "segment_map")
GIVEN_BACK = ("segment_free", "segment_unmap")


def capacity_of(device: Device) -> int | None:
    """Return what was reserved and free at the latest failed request; None where none failed."""
    reserved = sum(one.size for one in device.segments)
    for event in reversed(device.events):
        if event.action == "oom":
            return reserved + event.address
        if event.action in TAKEN:
            reserved -= event.size
        elif event.action in GIVEN_BACK:
            reserved += event.size
    return None
