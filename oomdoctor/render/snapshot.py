"""A replayed snapshot as text, and as JSON with sorted keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.snapshot.outcome import Difference, Replay


def replay_json(replay: Replay) -> str:
    """Return the comparison as a JSON document."""
    values = {
        "schema_version": 1,
        "oomdoctor": __version__,
        "allocations": replay.allocations,
        "same_address": replay.same_address,
        "segment_events": replay.segment_events,
        "same_segment_events": replay.same_segment_events,
        "events": replay.events,
        "events_per_second": replay.events_per_second,
        "corrections": replay.corrections,
        "inconsistent_events": replay.faults,
        "peak_allocated_bytes": replay.peak_allocated,
        "peak_reserved_bytes": replay.peak_reserved,
        "first_difference": _difference(replay.first_difference),
    }
    return json.dumps(values, indent=2, sort_keys=True) + "\n"


def _difference(first: Difference | None) -> dict[str, int] | None:
    if first is None:
        return None
    return {
        "device": first.device,
        "event": first.event,
        "requested_bytes": first.size,
        "recorded_address": first.recorded,
        "modelled_address": first.modelled,
    }


def replay_text(replay: Replay) -> str:
    """Return the comparison as a few lines."""
    allocated, reserved = format_size(replay.peak_allocated), format_size(replay.peak_reserved)
    events, speed = format_count(replay.events), format_count(replay.events_per_second)
    lines = [
        _share("allocations", replay.same_address, replay.allocations, "at the same address"),
        _share("segment events", replay.same_segment_events, replay.segment_events, "the same"),
        f"peak: {allocated} allocated, {reserved} reserved",
        f"{events} events, {speed} per second",
    ]
    if replay.corrections:
        lines.append(
            f"The size of {replay.corrections} blocks from before the trace was found by the replay"
        )
    if replay.faults:
        lines.append(f"{format_count(replay.faults)} events do not fit the others")
    first = replay.first_difference
    if first is not None:
        lines.append(
            f"first difference: event {format_count(first.event)} of device {first.device}"
            f" ({format_size(first.size)}) lies at {first.recorded:#x}, the model chose"
            f" {first.modelled:#x}"
        )
    return "\n".join(lines) + "\n"


def _share(what: str, same: int, count: int, how: str) -> str:
    return f"{what}: {format_count(same)} of {format_count(count)} {how}"
