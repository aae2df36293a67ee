"""Where the steps of a recorded run end, from the best sign that the recording has.

What the profiler calls steps outranks what the user noted; then comes the loop that the stacks show
outside of modules and optimizers, and last the rise and fall of the memory itself. A loop over the
layers of a model is none over steps: what happens within a module, an optimizer or autograd is not
looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise
from statistics import median, pstdev
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.loops import loop_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.shapes import Annotation, Device, Snapshot

FEWEST = 4
SWINGS = (0.5, 0.25, 0.12, 0.06)
FALL_SHARE = 0.75  # of what a step takes, it gives back: else it is a part of one
IRREGULAR = 0.3


class Steps(NamedTuple):
    """The number of the first event behind each step, and what showed it, in words."""

    ends: tuple[int, ...]
    shown_by: str


def steps_of(device: Device, snapshot: Snapshot, curve: Sequence[int]) -> Steps | None:
    """Return the steps of a device; None where there are fewer than four to be seen."""
    return (
        _annotated(device, snapshot.annotations)
        or _noted(device)
        or _looped(device, snapshot)
        or _swinging(curve)
    )


def _annotated(device: Device, annotations: Sequence[Annotation]) -> Steps | None:
    """Find the ends of `ProfilerStep#3` or of `Optimizer.step#AdamW.step`."""
    ends: dict[str, list[int]] = {}
    for one in annotations:
        if one.stage == "END" and one.device == device.number:
            ends.setdefault(one.name.rstrip("0123456789"), []).append(one.time_us)
    for start in ("ProfilerStep#", "Optimizer.step#"):
        for name, times in ends.items():
            if name.startswith(start) and len(times) >= FEWEST and device.times_us:
                found = sorted({bisect_right(device.times_us, time) for time in times})
                if len(found) >= FEWEST:
                    return Steps(tuple(found), f"the annotations {name}")
    return None


def _noted(device: Device) -> Steps | None:
    """Find where the number in the user's notes rises, or where their first word returns."""
    changes: list[tuple[int, str]] = []
    for at, note in enumerate(device.notes):
        if note and (not changes or note != changes[-1][1]):
            changes.append((at, note))
    numbers = [re.search(r"\d+", note) for _, note in changes]
    values = [int(one[0]) for one in numbers if one is not None and len(one[0]) < 19]
    if len(values) == len(changes) and values == sorted(values):
        ends = [at for at, value in _risen(changes, values)]
    else:
        first = changes[0][1] if changes else ""
        ends = [at for at, note in changes[1:] if note == first]
    return Steps(tuple(ends), "the notes of the user") if len(ends) >= FEWEST else None


def _risen(changes: list[tuple[int, str]], values: list[int]) -> list[tuple[int, int]]:
    pairs = zip(changes[1:], values, values[1:], strict=False)
    return [(at, after) for (at, _), before, after in pairs if after > before]


def _looped(device: Device, snapshot: Snapshot) -> Steps | None:
    found = loop_of(device, snapshot.stacks)
    if found is None or len(found.ends) < FEWEST:
        return None
    return Steps(found.ends, f"the loop at {found.frame.file}:{found.frame.line}")


def _swinging(curve: Sequence[int]) -> Steps | None:
    """Find the lows between rises of about equal length, each of which is nearly undone."""
    span = max(curve, default=0) - min(curve, default=0)
    for share in SWINGS:
        turns = _turns(curve, max(1, int(span * share)))
        lows, tops = turns[0::2], turns[1::2]
        if len(lows) <= FEWEST:
            continue
        gaps = [after - before for before, after in pairwise(lows)]
        falls = [
            (curve[top] - curve[after]) / (curve[top] - curve[before])
            for before, top, after in zip(lows, tops, lows[1:], strict=False)
        ]
        if pstdev(gaps) <= IRREGULAR * median(gaps) and median(falls) >= FALL_SHARE:
            return Steps(tuple(lows[1:]), "the rise and fall of the memory")
    return None


def _turns(curve: Sequence[int], least: int) -> list[int]:
    """Return where the curve turns by `least` bytes or more: low, top, low, top, ..."""
    turns: list[int] = []
    low = top = at_low = at_top = 0
    rising = False
    low = top = curve[0] if len(curve) else 0
    for at, value in enumerate(curve):
        if rising:
            if value > top:
                top, at_top = value, at
            elif value <= top - least:
                turns.append(at_top)
                rising, low, at_low = False, value, at
        elif value < low:
            low, at_low = value, at
        elif value >= low + least:
            turns.append(at_low)
            rising, top, at_top = True, value, at
    return turns
