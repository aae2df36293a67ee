"""The memory of a run over its time: of the fullest process inside, of all from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.recorder import balance
from oomdoctor.recorder.bundle import told_by
from oomdoctor.recorder.places import finite
from oomdoctor.render.page import Mark, Series, Stretch, Timeline
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.told import Process

Told: TypeAlias = "list[tuple[float, dict[str, Any]]]"

_MOST_POINTS = 400
_FEWEST = 3


def timeline_of(run: Run) -> Timeline | None:
    """Return the time line; None where hardly anything was seen."""
    process = max(run.working, key=_weight, default=None)
    told = [] if process is None else told_by(run, process)
    series = list(_inside(told))
    on_card = bool(series)
    host = Series("host, all processes", tuple(_thinned(list(_outside(run)))))
    series += [host] if len(host.points) >= _FEWEST else []
    if not series:
        return None
    limit = balance.card_bytes(run) if on_card else None
    rank = "" if process is None or process.rank is None else f" of rank {process.rank}"
    return Timeline(
        caption=f"Memory{rank} over the seconds of the run",
        across="seconds since the start",
        series=tuple(series),
        phases=tuple(_phases(told)),
        marks=() if process is None else tuple(_marks(run, process)),
        levels=(("card", float(limit)),) if limit is not None else (),
    )


def _weight(process: Process) -> int:
    figures = (one.peak_allocated_bytes or one.host_bytes or 0 for one in process.phases)
    return max((*figures, *(one.allocated_bytes or 0 for one in process.ooms)), default=0)


def _inside(told: Told) -> Iterator[Series]:
    for name, title in (("allocated_bytes", "allocated"), ("reserved_bytes", "reserved")):
        points = [(at, float(one[name])) for at, one in told if isinstance(one.get(name), int)]
        if len(points) >= _FEWEST:
            yield Series(title, tuple(_thinned(points)))


def _outside(run: Run) -> Iterator[tuple[float, float]]:
    for sample in run.samples:
        resident = [one.get("rss_bytes") for one in sample.processes]
        known = [one for one in resident if isinstance(one, int)]
        total = sample.job_bytes or sum(known)
        if total:
            yield sample.t, float(total)


def _phases(told: Told) -> Iterator[Stretch]:
    """Yield the phases in the order in which the process told their ends."""
    for end, one in told:
        if one.get("type") == "phase":
            start = end - (finite(one.get("seconds")) or 0.0)
            yield Stretch(str(one.get("phase")), max(0.0, start), end)


def _marks(run: Run, process: Process) -> Iterator[Mark]:
    for oom in process.ooms:
        size = "" if oom.requested_bytes is None else f", {format_size(oom.requested_bytes)}"
        at = oom.t - (run.started or 0.0)
        yield Mark(at, f"out of memory{size}", calm=oom.went_on)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep the highest point of each piece."""
    if len(points) <= _MOST_POINTS:
        return points
    size = -(-len(points) // _MOST_POINTS)
    pieces = (points[at : at + size] for at in range(0, len(points), size))
    return [max(piece, key=lambda one: one[1]) for piece in pieces]
