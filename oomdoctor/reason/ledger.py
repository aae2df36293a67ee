"""Draw up the balance sheet of the device: who holds which bytes, and what does not add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Origin
from oomdoctor.model.plan import Ledger, LedgerEntry
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Fact

OTHERS = "other_processes"
CONTEXT = "outside_allocator"
OUTSIDE = "outside_allocator_or_other_processes"
ALLOCATED = "allocated"
POOLS = "private_pools"
CACHE = "reserved_unallocated"
FREE = "free"
UNEXPLAINED = "unexplained"


def draw_up(book: FactBook) -> Ledger | None:
    """Return the balance sheet, or None where the inputs state no size at all."""
    capacity = _size(book, "oom.capacity") or _size(book, "gpu.total")
    entries = _entries(book, capacity)
    overshoot = overshoot_of(book)
    if capacity is None and not entries and overshoot is None:
        return None
    total = sum(entry.bytes for entry in entries)
    slack = sum(entry.slack_bytes for entry in entries)
    notes: list[str] = []
    rest = excess = None
    if capacity is not None and _covers_card(entries):
        slack += int(capacity.slack)
        rest = int(capacity.value) - total
        if rest < -slack:
            excess = -rest
            notes.append(
                f"The stated shares exceed the capacity by {format_size(excess)} beyond rounding: "
                "they stem from different moments or devices."
            )
    if rest is not None and rest > slack:
        entries = (
            *entries,
            LedgerEntry(
                owner=UNEXPLAINED,
                bytes=rest,
                slack_bytes=slack,
                origin=Origin.DERIVED,
                source="capacity - all shares",
            ),
        )
    if overshoot is not None:
        notes.append(
            "The overshoot is a lower bound: the message tells only the first request that failed."
        )
    return Ledger(
        capacity_bytes=None if capacity is None else int(capacity.value),
        entries=entries,
        overshoot_bytes=overshoot,
        unexplained_bytes=rest if rest is not None and rest > slack else None,
        contradiction_bytes=excess or 0,
        notes=tuple(notes),
    )


def overshoot_of(book: FactBook) -> int | None:
    """Return requested minus what was left on the card or under the cap, at least zero."""
    requested = _size(book, "oom.requested")
    if requested is None or book.value("oom.absurd_size") is True:
        return None
    free = _size(book, "oom.free")
    allowed, reserved = _size(book, "oom.allowed"), _size(book, "torch.reserved")
    left = [] if free is None else [int(free.value)]
    if allowed is not None and reserved is not None:
        left.append(int(allowed.value) - int(reserved.value))
    if not left:
        return None
    missing = int(requested.value) - max(0, min(left))
    return missing if missing > 0 else None


def _entries(book: FactBook, capacity: Fact | None) -> tuple[LedgerEntry, ...]:
    entries = list(_outside(book))
    allocated, pools = _size(book, "torch.allocated"), _size(book, "torch.private_pools")
    if allocated is not None:
        inside = 0 if pools is None else min(int(pools.value), int(allocated.value))
        entries.append(_entry(ALLOCATED, allocated, minus=inside))
        if pools is not None:
            entries.append(_entry(POOLS, pools))
    for owner, key in ((CACHE, "torch.reserved_unallocated"), (FREE, "oom.free")):
        fact = _size(book, key)
        if fact is None and key == "oom.free" and _size(book, "oom.requested") is None:
            fact = _size(book, "gpu.free")
        if fact is not None:
            entries.append(_entry(owner, fact))
    limit = None if capacity is None else int(capacity.value)
    return tuple(
        e
        for e in entries
        if e.bytes >= 0 and (limit is None or e.owner != FREE or e.bytes <= limit)
    )


def _outside(book: FactBook) -> list[LedgerEntry]:
    """List what lies outside the allocator, split by owner only where that is known."""
    foreign, context = _size(book, "gpu.foreign"), _size(book, "balance.context")
    outside = _size(book, "balance.outside")
    if foreign is not None and context is not None:
        return [_entry(OTHERS, foreign), _entry(CONTEXT, context)]
    if foreign is not None and outside is not None and int(foreign.value) <= int(outside.value):
        rest = _entry(CONTEXT, outside, minus=int(foreign.value))
        return [_entry(OTHERS, foreign), rest]
    if foreign is not None:
        return [_entry(OTHERS, foreign)]
    if outside is not None:
        return [_entry(OUTSIDE, outside)] if int(outside.value) > 0 else []
    return [] if context is None else [_entry(CONTEXT, context)]


def _covers_card(entries: tuple[LedgerEntry, ...]) -> bool:
    """Say whether enough shares are known for their sum to be held against the capacity."""
    owners = {entry.owner for entry in entries}
    return FREE in owners and ALLOCATED in owners


def _entry(owner: str, fact: Fact, *, minus: int = 0) -> LedgerEntry:
    return LedgerEntry(
        owner=owner,
        bytes=int(fact.value) - minus,
        slack_bytes=int(fact.slack),
        origin=Origin.DERIVED if minus else fact.origin,
        source=fact.source,
    )


def _size(book: FactBook, key: str) -> Fact | None:
    fact = book.get(key)
    return fact if fact is not None and isinstance(fact.value, int) else None
