"""The peaks of a run and what was left: of the card as processes told them, of the host as seen.

Only what was measured stands here; a peak between two looks from outside may have been higher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.told import Process


class Peak(NamedTuple):
    """A highest figure, of which process, and what there is of that memory."""

    bytes: int
    rank: int | None = None
    limit_bytes: int | None = None

    @property
    def left_bytes(self) -> int | None:
        """What was left at the peak."""
        return None if self.limit_bytes is None else self.limit_bytes - self.bytes


def allocated_peak(run: Run) -> Peak | None:
    """Return the highest allocated bytes of a process on its card."""
    return _highest(run, "peak_allocated_bytes", "allocated_bytes")


def reserved_peak(run: Run) -> Peak | None:
    """Return the highest bytes that torch's allocator of a process held, with its card's bytes."""
    found = _highest(run, "peak_reserved_bytes", "reserved_bytes")
    return None if found is None else found._replace(limit_bytes=card_bytes(run))


def host_peak(run: Run) -> Peak | None:
    """Return the highest sum of all processes on the host; else that of the largest process."""
    limit = host_limit(run)
    known = [one.job_bytes for one in run.samples]
    together = max((one for one in known if one is not None), default=0)
    seen = (one.get("peak_rss_bytes") or 0 for sample in run.samples for one in sample.processes)
    told = (one.host_bytes or 0 for process in run.processes for one in process.phases)
    largest = run.told.get("largest_process_bytes")
    highest = max((together, *seen, *told, largest or 0), default=0)
    return Peak(highest, limit_bytes=limit) if highest else None


def host_limit(run: Run) -> int | None:
    """Return what the memory group of the run may have; None where nothing limits it.

    Of the machine's memory others have their part.
    """
    limits = [one.host.get("cgroup_limit_bytes") for one in run.samples]
    return min((one for one in limits if one is not None), default=None)


def least_available(run: Run) -> Peak | None:
    """Return the least memory of the machine that was available, of all there is."""
    known = [one.host for one in run.samples if one.host.get("available_bytes") is not None]
    least = min(known, key=lambda one: one["available_bytes"], default=None)
    if least is None:
        return None
    return Peak(least["available_bytes"], limit_bytes=least.get("total_bytes"))


def card_bytes(run: Run) -> int | None:
    """Return the bytes of the card: as an error told them, else of the smallest one there is."""
    told = [one.card_bytes for process in run.processes for one in process.ooms]
    known = [one for one in told if one is not None]
    if known:
        return min(known)
    cards = (run.told.get("machine") or {}).get("cards") or ()
    sizes = [one.get("total_bytes") for one in cards]
    return min((one for one in sizes if one is not None), default=None)


def steps(run: Run) -> int | None:
    """Return the steps that every rank has made; None where none was seen."""
    made = [one.steps[-1].number for one in run.working if one.steps]
    return min(made, default=None)


def _highest(run: Run, name: str, other: str) -> Peak | None:
    found = [
        Peak(value, process.rank)
        for process in run.working
        for value in _figures(process, name, other)
    ]
    return max(found, key=lambda one: one.bytes, default=None)


def _figures(process: Process, name: str, other: str) -> Iterator[int]:
    of_parts: Iterable[object] = (*process.phases, *process.steps)
    for part in of_parts:
        value = getattr(part, name)
        if value:
            yield value
    for oom in process.ooms:
        value = getattr(oom, other)
        if value:
            yield value
