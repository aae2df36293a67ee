"""What a simulation adds to a diagnosis: the failed request by name, and fixes judged by traces.

The job of the configs is traced as it is and after each fix that changes it. Requests of the traced
job that the allocator would print as the failed one are listed, those of the failing phase first,
the one that fails on a card of that size before all.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.estimating.verdicts import least_room
from oomdoctor.memory.outside import outside
from oomdoctor.memory.rounding import tensors
from oomdoctor.memory.stream_balance import folded
from oomdoctor.memory.stream_category import categorised
from oomdoctor.model.estimate import Owner
from oomdoctor.reason.after import changed_jobs, judged
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.estimating.engine import Engine
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.facts.book import FactBook
    from oomdoctor.memory.stream import Allocation
    from oomdoctor.model.job import Job
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.reason.after import Changed

NAMED = 3
MOST_FIXES = 6
# phases of a failure -> phase or part of a simulated run
PLACES: Mapping[str, str] = {
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "optimizer": "optimizer",
    "eval": "evaluation",
    "generate": "generation",
    "load": "load",
    "save": "save",
    "merge": "merge",
    "resume": "resume",
}


def with_simulation(diagnosis: Diagnosis, book: FactBook, engine: Engine) -> Diagnosis:
    """Return the diagnosis with what traces of its job say; as it is where the job is not known."""
    changed = changed_jobs(diagnosis.prescriptions[:MOST_FIXES], book, whole=False)
    if changed is None:
        note = "the job was not simulated: its model, batch or length is not stated"
        return replace(diagnosis, notes=(*diagnosis.notes, note))
    peak = engine.peak(changed.job)

    def need(job: Job) -> int:
        return least_room(engine.peak(job))

    return replace(
        diagnosis,
        traced=requests(peak, changed, book),
        prescriptions=judged(diagnosis.prescriptions, changed, need, peak.band),
    )


def requests(peak: Peak, changed: Changed, book: FactBook) -> tuple[Owner, ...]:
    """Return who makes requests that print as the failed one, likeliest first."""
    wanted = book.get("oom.requested")
    if peak.stream is None or wanted is None or not isinstance(wanted.value, int):
        return ()
    expandable = "expandable_segments:True" in peak.settings
    sizes = tensors(wanted.value, slack=wanted.slack, expandable=expandable)
    beside = outside(changed.job)
    failed = peak.failure(changed.room - (beside.low + beside.high) // 2)
    place = PLACES.get(str(book.value("run.phase")), "")
    kinds = categorised(peak.stream)
    found: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Allocation] = {}
    for number, one in enumerate(peak.stream.allocations):
        if any(interval.holds(one.size) for interval in sizes):
            key = (*_place(one), kinds[number])
            found[key] += 1
            first.setdefault(key, one)
    fails = None if failed is None else _place(failed.allocation)
    ordered = sorted(
        found,
        key=lambda key: (
            key[:3] != fails,
            bool(place) and place not in (first[key].phase, first[key].part),
            -found[key],
            key,
        ),
    )
    return tuple(
        Owner(
            module=key[0],
            operator=key[1],
            category=key[3],
            phase=first[key].phase,
            part=key[2],
            bytes=first[key].size,
            allocations=found[key],
        )
        for key in ordered[:NAMED]
    )


def _place(one: Allocation) -> tuple[str, str, str]:
    """Return what is the same in every step."""
    return folded(one.module), one.operator, one.part
