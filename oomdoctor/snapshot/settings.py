"""The allocator's settings that a snapshot was taken under."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.memory.allocator_settings import (
    INTERVALS,
    VARIABLES,
    AllocatorSettings,
    read_settings,
)
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.snapshot.shapes import Device


def settings_in(listed: Mapping[str, object], devices: tuple[Device, ...]) -> AllocatorSettings:
    """Return the settings that a snapshot lists; where it lists none, what its segments show.

    The text of the variable says most, but what was changed later stands in the other keys.
    """
    settings = _written(listed)
    split = listed.get("max_split_size")
    if type(split) is int and split > 0:
        settings = replace(settings, max_split=split)
    threshold = listed.get("garbage_collection_threshold")
    if isinstance(threshold, (int, float)) and 0 < threshold < 1:
        settings = replace(settings, gc_threshold=float(threshold))
    divisions = _divisions(listed.get("roundup_power2_divisions"))
    if divisions is not None:
        settings = replace(settings, divisions=divisions)
    expandable = listed.get("expandable_segments")
    if not isinstance(expandable, bool):
        expandable = settings.expandable or any(
            segment.expandable for device in devices for segment in device.segments
        )
    return replace(settings, expandable=expandable, throw_on_oom=False, caching=True)


def _written(listed: Mapping[str, object]) -> AllocatorSettings:
    for name in VARIABLES:
        text = listed.get(name)
        if isinstance(text, str) and text:
            try:
                return read_settings(text)
            except InputError:  # an option of another version; the keys beside it say the rest
                break
    return AllocatorSettings()


def _divisions(listed: object) -> tuple[int, ...] | None:
    """Return the divisions of the 16 intervals, None where all are 0."""
    if not isinstance(listed, dict):
        return None
    found = []
    for at in range(INTERVALS):
        value = listed.get(str(1 << at), 0)
        found.append(value if type(value) is int and value >= 0 else 0)
    return tuple(found) if any(found) else None
