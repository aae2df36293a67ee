"""Whether a job fits once a fix is applied: its peak by formula before and after, on its card.

It is said only where the job is known (a whole training config that states model, batch and
length), where the formula agrees with the log that the job did not fit, and where the fix changes
what a job is described by. Compiled models allocate in ways of their own.
The formula's peak before the fix is first raised to what the failure proves was needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs.patched import facts_of_settings
from oomdoctor.memory import bands
from oomdoctor.memory.outside import outside
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.job import Job
    from oomdoctor.model.plan import Prescription

    Peak = Callable[[Job], int]

NEEDED = ("train.micro_batch", "train.seq_len")
LOSS = ("loss.impl", "loss.used")
MOST_FIXES = 12


class Changed(NamedTuple):
    """The job of the log, the room that its allocator had, and the job after each fix."""

    job: Job
    room: int
    least: int
    after: dict[str, Job]


def with_verdicts(
    prescriptions: Sequence[Prescription], book: FactBook
) -> tuple[Prescription, ...]:
    """Return the fixes with what the formula says of the job after each."""
    from oomdoctor.memory.formula import peak_by_formula

    changed = changed_jobs(prescriptions, book)
    if changed is None:
        return tuple(prescriptions)

    def peak(job: Job) -> int:
        found = max(one.allocated_bytes for one in peak_by_formula(job).phases)
        return int(found * bands.FRAGMENTED)

    return judged(prescriptions, changed, peak, bands.FORMULA)


def judged(
    prescriptions: Sequence[Prescription], changed: Changed, peak: Peak, band: bands.Band
) -> tuple[Prescription, ...]:
    """Say of each fix whether the job fits afterwards; nothing where that stays open."""
    beside = outside(changed.job)
    before = peak(changed.job)
    raised = max(1.0, changed.least / max(before, 1))
    if before * raised * (1 + band.up) <= changed.room - beside.high:
        return tuple(prescriptions)  # by the formula the job fits as it is: it misses something
    verdicts: dict[str, bool | None] = {}
    for fix, job in changed.after.items():
        need = peak(job)
        if need * raised * (1 + band.up) + beside.high <= changed.room:
            verdicts[fix] = True
        elif need * (1 - band.down) + beside.low > changed.room:
            verdicts[fix] = False
    return tuple(
        one
        if one.sufficient is False or one.fix_id not in verdicts
        else replace(one, sufficient=verdicts[one.fix_id])
        for one in prescriptions
    )


def changed_jobs(
    prescriptions: Sequence[Prescription], book: FactBook, *, whole: bool = True
) -> Changed | None:
    """Return the job before and after each fix that changes it; None where it is not known.

    `whole` asks for a config that was read to its end, and for a fix that changes the job.
    """
    from oomdoctor.memory.jobs import job_of

    room = _room(book)
    closed = "train-config" in book.closed or not whole
    if room is None or not closed or not all(_is_stated(book.get(key)) for key in NEEDED):
        return None
    book = _as_seen(book)
    job = job_of(book).job
    if job is None or job.compiled:
        return None
    after = {
        fix: other
        for fix, other in jobs_after(prescriptions[:MOST_FIXES], book).items()
        if other != job
    }
    return Changed(job, room, _least(book), after) if after or not whole else None


def jobs_after(prescriptions: Sequence[Prescription], book: FactBook) -> dict[str, Job]:
    """Return the job after each fix whose patches say something of it, by the fix' name."""
    from oomdoctor.memory.jobs import job_of

    after: dict[str, Job] = {}
    for one in prescriptions:
        facts = [
            fact
            for patch in one.patches
            for fact in facts_of_settings(patch.dialect, patch.settings)
        ]
        job = job_of(_changed(book, facts)).job if facts else None
        if job is not None:
            after[one.fix_id] = job
    return after


def _as_seen(book: FactBook) -> FactBook:
    """Return the book with what the log shows of a job, whatever a framework does by default.

    A request of [rows, tokens, vocabulary] is made by no loss that works in chunks.
    """
    if book.value("fingerprint.logits") is not True or _is_stated(book.get("loss.impl")):
        return book
    source = "the request is that of whole logits"
    plain = [Fact(key=key, value="full", source=source) for key in LOSS]
    return book.without(LOSS).add(plain)


def _changed(book: FactBook, facts: Sequence[Fact]) -> FactBook:
    """Return a book in which some facts are others, without what followed from the old ones."""
    keys = {fact.key for fact in facts}
    keys |= set(LOSS) if keys.intersection(LOSS) else set()
    gone = [
        key
        for key, held in book.facts.items()
        if key in keys or held.origin in (Origin.DERIVED, Origin.ASSUMED)
    ]
    return book.without(gone).add(facts)


def _is_stated(fact: Fact | None) -> bool:
    return fact is not None and fact.origin is not Origin.ASSUMED


def _room(book: FactBook) -> int | None:
    """Return the bytes that the process could have: the cap, else the card without the others."""
    allowed = book.value("oom.allowed")
    if isinstance(allowed, int):
        return allowed
    whole = book.value("oom.capacity") or book.value("gpu.total")
    if not isinstance(whole, int):
        return None
    others = book.value("balance.foreign_low")
    return whole - (others if isinstance(others, int) else 0)


def _least(book: FactBook) -> int:
    """Return what the failed request proves the job needed."""
    allocated, requested = book.value("torch.allocated"), book.value("oom.requested")
    if isinstance(allocated, int) and isinstance(requested, int):
        return allocated + requested
    return 0
