"""Free memory of no use: holes too small for a request, and the blocks that keep them apart.

A segment goes back to the card only when all of it is free. So one small block that lives long pins
a whole segment, and what is free beside it serves only requests that fit there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.facts.segments import SMALL_REQUEST
from oomdoctor.memory.allocator_snapshot import segments
from oomdoctor.record import NamedTuple, dataclass
from oomdoctor.snapshot.events import NO_POOL
from oomdoctor.snapshot.lives import held_at, waiting_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.snapshot.events import Event
    from oomdoctor.snapshot.lives import Life, Lives
    from oomdoctor.snapshot.outcome import Reached

MOST_PINS = 10


class Pin(NamedTuple):
    """A segment with free memory, and the block in it that has been there the longest."""

    segment_address: int
    segment_bytes: int
    free_bytes: int
    largest_hole_bytes: int
    blocks: int
    life: Life | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """What was free before an event, and why it did not help.

    `split_bytes` are free parts of segments that are in use, `whole_bytes` segments that are free.
    Holes are those that the request could have used: of its pool and stream. `request_bytes` and
    `card_free_bytes` are those of a failed request, None where none failed.
    """

    moment: int
    exact: bool
    request_bytes: int | None
    card_free_bytes: int | None
    reserved_bytes: int
    allocated_bytes: int
    waiting_bytes: int
    split_bytes: int
    whole_bytes: int
    holes: int
    largest_hole_bytes: int
    private_free_bytes: int
    pins: tuple[Pin, ...]

    @property
    def free_bytes(self) -> int:
        """Return what was free in the allocator and on the card together."""
        return self.split_bytes + self.whole_bytes + (self.card_free_bytes or 0)

    @property
    def proven(self) -> bool:
        """Say whether a request failed although enough was free, only not in one piece."""
        request = self.request_bytes
        return request is not None and self.largest_hole_bytes < request <= self.free_bytes


def fragmentation_at(
    reached: Reached, moment: int, event: Event | None, lives: Lives
) -> Fragmentation:
    """Look at the allocator before an event; `event` is the request that failed."""
    listed = segments(reached.allocator)
    small = event is not None and event.size <= SMALL_REQUEST
    stream = 0 if event is None else event.stream
    common = [one for one in listed if one["segment_pool_id"] == NO_POOL]
    usable = [
        size
        for one in common
        if (one["segment_type"] == "small") == small and one["stream"] == stream
        for size in _holes(one)
    ]
    oldest = _oldest(reached, moment, lives)
    pins = [_pin(one, oldest) for one in common if _holes(one) and one["active_size"]]
    pins.sort(key=lambda one: -one.free_bytes)
    return Fragmentation(
        moment=moment,
        exact=reached.exact,
        request_bytes=None if event is None else event.size,
        card_free_bytes=None if event is None else event.address,
        reserved_bytes=sum(one["total_size"] for one in listed),
        allocated_bytes=sum(one["allocated_size"] for one in listed),
        waiting_bytes=sum(one["active_size"] - one["allocated_size"] for one in listed),
        split_bytes=sum(sum(_holes(one)) for one in common if one["active_size"]),
        whole_bytes=sum(one["total_size"] for one in common if not one["active_size"]),
        holes=len(usable),
        largest_hole_bytes=max(usable, default=0),
        private_free_bytes=sum(
            sum(_holes(one)) for one in listed if one["segment_pool_id"] != NO_POOL
        ),
        pins=tuple(pins[:MOST_PINS]),
    )


def _holes(segment: Mapping[str, Any]) -> list[int]:
    return [one["size"] for one in segment["blocks"] if one["state"] == "inactive"]


def _oldest(reached: Reached, moment: int, lives: Lives) -> dict[int, Life]:
    """Return who has each block, by the address that the model gave it."""
    held = [*held_at(lives, moment), *waiting_at(lives, moment)]
    by_recorded = {one.address: one for one in held}
    return {
        block.address: by_recorded[address]
        for address, block in reached.blocks.items()
        if address in by_recorded
    }


def _pin(segment: Mapping[str, Any], lives: Mapping[int, Life]) -> Pin:
    held = [one for one in segment["blocks"] if one["state"] != "inactive"]
    known = [lives[one["address"]] for one in held if one["address"] in lives]
    holes = _holes(segment)
    return Pin(
        segment["address"],
        segment["total_size"],
        sum(holes),
        max(holes),
        len(held),
        min(known, key=lambda one: (one.born, one.size), default=None),
    )
