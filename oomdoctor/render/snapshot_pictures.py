"""The pictures of a snapshot: memory over the events of the trace, the peak as a flame graph."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from oomdoctor.render.page import (
    Flame,
    FlameFrame,
    Mark,
    Series,
    Stretch,
    Table,
    Timeline,
)
from oomdoctor.render.snapshot_words import blocks_words, short
from oomdoctor.render.words import percent
from oomdoctor.snapshot.calls import calls_of
from oomdoctor.snapshot.tree import tree_of
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.calls import Call
    from oomdoctor.snapshot.report import DeviceReport
    from oomdoctor.snapshot.stacks import Stack

POINTS = 1200
MOST_STEPS = 60
NO_STACK = "no stack: made before the recording, or without one"


def memory_timeline(device: DeviceReport) -> Timeline | None:
    """Return what was held before each event, with the steps and the request that failed."""
    values = device.curve
    if device.events < 2 or not len(values):
        return None
    count = min(POINTS, len(values))
    bounds = sorted({len(values) * at // count for at in range(count + 1)})
    points: list[tuple[float, float]] = []
    for start, end in pairwise(bounds):
        # both ends of a stretch, so that what rises for a moment is not seen to last
        held = values[start:end]
        top = max(range(len(held)), key=held.__getitem__)
        points += [(start, held[0])] if top else []
        points.append((start + top, held[top]))
    points.append((len(values) - 1, values[-1]))
    return Timeline(
        caption="Memory in use over the events of the trace",
        across="event",
        series=(Series("in use", tuple(points)),),
        phases=_steps(device),
        marks=_marks(device),
        levels=_levels(device),
    )


def _steps(device: DeviceReport) -> tuple[Stretch, ...]:
    ends = device.steps.ends if device.steps is not None else ()
    if not 2 <= len(ends) <= MOST_STEPS:
        return ()
    return tuple(
        Stretch(f"step {number}", start, end)
        for number, (start, end) in enumerate(pairwise((0, *ends)), 1)
    )


def _marks(device: DeviceReport) -> tuple[Mark, ...]:
    found = [Mark(device.peak.moment, f"peak {format_size(device.peak.held_bytes)}", calm=True)]
    if device.failure is not None and device.failed_bytes is not None:
        words = f"out of memory: {format_size(device.failed_bytes)} asked for"
        found.append(Mark(device.failure.moment, words))
    return tuple(found)


def _levels(device: DeviceReport) -> tuple[tuple[str, float], ...]:
    if device.capacity_bytes is None:
        return ()
    return ((f"to be had {format_size(device.capacity_bytes)}", device.capacity_bytes),)


def flame_of(moment: Balance, stacks: Sequence[Stack]) -> Flame | None:
    """Return the calls that lead to what is held; None where no stack was recorded."""
    nodes = tree_of(moment, stacks)
    if not nodes:
        return None
    whole = moment.held_bytes
    root = FlameFrame(
        0, 0, whole, f"all: {format_size(whole)}", f"all: {format_size(whole)}", own=False
    )
    return Flame(
        caption="By which calls it was asked for: each call lies below its caller",
        whole=whole,
        frames=(root, *(_frame(one, whole) for one in calls_of(moment, stacks))),
        table=Table(
            caption="Calls from the outermost inwards; what leads to less than 1 % is left out",
            headers=("held", "share", "calls"),
            rows=tuple(
                (
                    format_size(one.held_bytes),
                    percent(one.held_bytes / whole),
                    "· " * one.depth + " → ".join(_ends([short(frame) for frame in one.frames])),
                )
                for one in nodes
            ),
            numeric=frozenset({0, 1}),
        ),
    )


def _frame(call: Call, whole: int) -> FlameFrame:
    held = (
        f"{format_size(call.held_bytes)} ({percent(call.held_bytes / whole)}) in"
        f" {blocks_words(call.blocks)}"
    )
    if not call.frames:
        return FlameFrame(
            call.depth + 1, call.start, call.held_bytes, NO_STACK, f"{NO_STACK}: {held}", own=False
        )
    last = call.frames[-1]
    more = len(call.frames) - 1
    label = f"{last.name} {last.file.replace(chr(92), '/').rpartition('/')[2]}:{last.line}"
    through = f" through {more} more call{'s' * (more > 1)}" if more else ""
    return FlameFrame(
        call.depth + 1,
        call.start,
        call.held_bytes,
        label,
        f"{last.place}{through}: {held}",
        own=not last.library,
    )


def _ends(words: list[str]) -> list[str]:
    """Keep the first and the last calls of a long chain."""
    return words if len(words) <= 3 else [words[0], "…", words[-1]]
