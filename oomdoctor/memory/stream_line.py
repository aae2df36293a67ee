"""The time line of a replayed stream, with as few points as can be shown.

Each point stands for a run of events within one phase and part and has the highest figures among
them, so that no peak is lost by taking fewer points.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from oomdoctor.memory.stream_lifetimes import ends_of, stretches
from oomdoctor.model.estimate import LinePoint

if TYPE_CHECKING:
    from oomdoctor.memory.stream import Stream
    from oomdoctor.memory.stream_lifetimes import Stretch
    from oomdoctor.memory.stream_replay import Replay

POINTS = 240


def time_line(stream: Stream, played: Replay, *, points: int = POINTS) -> tuple[LinePoint, ...]:
    """Return about `points` points, at least one for each part of a phase that has events."""
    count = len(played.allocated)
    bounds = stretches(stream)
    found: list[LinePoint] = []
    for stretch, after in zip(bounds, ends_of(bounds, count), strict=True):
        length = min(after, count) - stretch.start
        if length <= 0:
            continue
        pieces = max(1, min(length, round(points * length / count)))
        cuts = [stretch.start + length * piece // pieces for piece in range(pieces + 1)]
        found += [_point(played, stretch, first, last) for first, last in pairwise(cuts)]
    return tuple(found)


def _point(played: Replay, stretch: Stretch, first: int, last: int) -> LinePoint:
    return LinePoint(
        at=first,
        phase=stretch.phase,
        part=stretch.part,
        allocated_bytes=max(played.allocated[first:last]),
        reserved_bytes=max(played.reserved[first:last]),
    )
