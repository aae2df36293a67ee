"""The verdicts on a run: of each process on its card and on the host, of the job, of the cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.growth.verdict import (
    Kind,
    Level,
    Verdict,
    card_verdict,
    device_verdict,
    host_verdict,
)
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from oomdoctor.growth.book import Book, CardBook
    from oomdoctor.growth.points import Track
    from oomdoctor.growth.process import ProcessBook

DEVICE = "device"
HOST = "host"
_FEWEST_POINTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict and whom it is about: a process, else a card, else the whole job.

    `by_step` tells whether its steps are steps of training, or seconds. `others` are the processes
    on a card that are not the job's.
    """

    memory: str
    verdict: Verdict
    pid: int | None = None
    rank: int | None = None
    name: str = ""
    card: int | None = None
    by_step: bool = False
    others: bool = False

    @property
    def key(self) -> tuple[str, str, int | None, int | None]:
        """Return what tells it from other findings: an alarm is raised once for each."""
        return (self.memory, self.verdict.kind.value, self.pid, self.card)


def findings(book: Book) -> tuple[Finding, ...]:
    """Return all verdicts, those that ask for a look first."""
    found = [one for process in book.processes.values() for one in _of_process(process, book)]
    told_inside = any(_knows_its_card(one) for one in book.processes.values())
    for card in book.cards.values():
        found += _of_card(card, told_inside=told_inside)
    found += _of_job(book, found)
    return tuple(sorted(found, key=_urgency))


def _urgency(found: Finding) -> tuple[int, float]:
    """Order by level, then by how soon memory is full."""
    told = found.verdict.forecast
    soon = told.seconds if told is not None and told.seconds is not None else float("inf")
    return -found.verdict.level, soon


def _of_process(process: ProcessBook, book: Book) -> list[Finding]:
    found = []
    if process.allocated.last is not None:
        verdict = device_verdict(
            process.allocated.points,
            process.reserved.points,
            process.idle.points,
            limit_bytes=_device_limit(process, book),
        )
        found.append(_about(process, DEVICE, verdict, by_step=process.step is not None))
    elif process.sampled_device.last is not None:
        verdict = card_verdict(
            process.sampled_device.points, limit_bytes=_device_limit(process, book)
        )
        found.append(_about(process, DEVICE, verdict, by_step=False))
    points = process.host.points
    if len(points) >= _FEWEST_POINTS:
        verdict = host_verdict(points, limit_bytes=_host_limit(process, book))
        found.append(_about(process, HOST, verdict, by_step=process.by_step))
    return found


def _knows_its_card(process: ProcessBook) -> bool:
    return process.allocated.last is not None or process.sampled_device.last is not None


def _about(process: ProcessBook, memory: str, verdict: Verdict, *, by_step: bool) -> Finding:
    return Finding(
        memory=memory,
        verdict=verdict,
        pid=process.pid,
        rank=process.rank,
        name=process.name,
        by_step=by_step,
    )


def _of_card(card: CardBook, *, told_inside: bool) -> list[Finding]:
    """Judge a card from outside: what others have, and ours where no process tells more."""
    found = []
    pairs: list[tuple[Track, int | None, bool]] = [(card.others, card.ours_bytes, True)]
    if not told_inside:
        pairs.append((card.ours, card.others_bytes, False))
    for track, beside, others in pairs:
        if len(track.points) >= _FEWEST_POINTS:
            limit = None if card.total_bytes is None else card.total_bytes - (beside or 0)
            verdict = card_verdict(track.points, limit_bytes=limit)
            found.append(Finding(memory=DEVICE, verdict=verdict, card=card.index, others=others))
    return found


def _of_job(book: Book, found: list[Finding]) -> list[Finding]:
    """Judge all processes together, where no single one explains the growth."""
    several = sum(one.sampled_host.last is not None for one in book.processes.values()) > 1
    points = book.job.points
    if not several or len(points) < _FEWEST_POINTS:
        return []
    room = book.available_bytes
    limit = None if room is None or book.job_bytes is None else book.job_bytes + room
    verdict = host_verdict(points, limit_bytes=limit)
    explained = max((one.verdict.level for one in found if one.memory == HOST), default=0)
    if verdict.kind is Kind.HOST_LEAK and explained >= verdict.level:
        verdict = replace(verdict, level=Level.QUIET)
    return [Finding(memory=HOST, verdict=verdict)]


def _host_limit(process: ProcessBook, book: Book) -> int | None:
    """Return what a process may have: what it has and what is left, or its own limit."""
    now, limits = process.host_bytes, []
    if now is not None and book.available_bytes is not None:
        limits.append(now + book.available_bytes)
    if process.limit_bytes is not None:
        limits.append(process.limit_bytes)
    return min(limits, default=None)


def _device_limit(process: ProcessBook, book: Book) -> int | None:
    """Return what a process's allocator may have of its card, less what lies outside of it."""
    cards = [book.cards[index] for index in sorted(book.cards)]
    if not cards:
        return process.card_bytes
    place = process.card if process.card in book.cards else None
    card = cards[(process.rank or 0) % len(cards)] if place is None else book.cards[place]
    if card.total_bytes is None:
        return process.card_bytes
    outside = max((card.ours_bytes or 0) - (process.device_bytes or 0), 0)
    return card.total_bytes - (card.others_bytes or 0) - outside
