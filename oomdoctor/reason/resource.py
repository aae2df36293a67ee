"""Decide what ran out, and which of the four answers follows from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.reason.candidates import resource_of
from oomdoctor.reason.rank import support

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Failure, Quote
    from oomdoctor.reason.rank import Ranking

FULL_CARD = 0.90
"""A card that a device tool shows fuller than this is a sign of a shortage."""

_HOST_SIGNS = (
    "host.oom_kill",
    "host.shm_error",
    "host.worker_killed",
    "host.allocation_failed",
    "host.pinned_failed",
    "host.paging_file",
    "host.map_worker_died",
)
_NOT_MEMORY_SIGNS = (
    "assert.device_side",
    "fault.illegal_access",
    "fault.device_busy",
    "fault.not_supported",
    "fault.kernel_shared_memory",
    "fault.size_overflow",
    "fault.device_lost",
    "fault.device_index",
    "fault.duplicate_device",
    "fault.no_device",
    "fault.versions",
    "fault.launch_resources",
    "fault.memlock",
    "host.ended_outside",
    "assert.on_cpu",
    "host.fd_limit",
    "host.shm_race",
    "collective.timeout",
    "collective.mismatch",
)
_BEFORE = (
    *("oom.absurd_size", "assert.before_oom", "collective.before_oom"),
    "fault.handle_room",
)
_TABLE_SIGNS = ("gpu.small_rows_only_gpu0", "mps.client_limit", "oom.repeats_same_allocated")
# Texts that only the allocator (or an engine that read its figures) prints for device memory.
_SURE_FORMS = frozenset({"allocator", "engine", "preempted"})
_NOT_MEMORY_KINDS = frozenset({"assert", "illegal-access", "collective", "size", "device-lost"})
# Caps bind on the allocator's own pool; segments and rounding leave up to this share unused.
_CAP_ROOM = 0.06
_SETTLED_MASS = 0.75
_OFF_CARD = ("host", "not_memory")
# A rule whose evidence adds this much (odds of 7) is a sign by itself, if a log opens its gate: a
# table of the cards shows who uses them, in a healthy run as well.
_SIGN_NATS = 2.0
_LOG_KEYS = ("log.", "trace.", "growth.", "host.", "oom.", "torch.")
_UNOWNED_BYTES = 2 * 1024**3


def certain_resource(book: FactBook, event: Failure | None) -> str:
    """Return what ran out as far as it is certain before any rule speaks, else `unknown`."""
    if any(book.value(key) is True for key in _BEFORE):
        return "not_memory"
    if event is not None:
        return _of_event(book, event)
    if book.value("oom.seen") is True:
        return _of_device_message(book)
    if any(book.value(key) is True for key in _HOST_SIGNS):
        return "host"
    if any(book.value(key) is True for key in _NOT_MEMORY_SIGNS):
        return "not_memory"
    return "unknown"


def _of_event(book: FactBook, event: Failure) -> str:
    if event.kind == "gpu-oom":
        return _of_device_message(book)
    if event.kind in ("host-oom", "shm"):
        return "unknown" if _is_bare_kill(book) else "host"
    told = {fact.key for fact in event.facts if fact.value is True}
    elsewhere = event.kind == "other" and not told.isdisjoint(_NOT_MEMORY_SIGNS)
    return "not_memory" if elsewhere or event.kind in _NOT_MEMORY_KINDS else "unknown"


def leaning_of(certain: str, book: FactBook, event: Failure | None) -> str:
    """Return `certain`, or `killed` where a signal 9 is all there is and no device complained.

    Whoever sent it, a rule for device memory then has nothing that it could explain.
    """
    bare = event is not None and event.kind == "host-oom" and _is_bare_kill(book)
    return "killed" if certain == "unknown" and bare and not book.value("oom.seen") else certain


def _is_bare_kill(book: FactBook) -> bool:
    """Say whether signal 9 is all that is known: people and schedulers send it as well."""
    return book.value("host.killed") is True and not any(
        book.value(key) is True for key in _HOST_SIGNS
    )


def _of_device_message(book: FactBook) -> str:
    """Read the allocator's message: a cap, the card, or a request that should have fitted."""
    if _is_capped(book):
        return "cap"
    if book.value("oom.request_fits_free") is True:
        return "unknown"
    figures = book.value("oom.requested") is not None or book.value("torch.allocated") is not None
    return "gpu" if figures or book.value("oom.form") in _SURE_FORMS else "unknown"


def _is_capped(book: FactBook) -> bool:
    allowed, requested = book.value("oom.allowed"), book.value("oom.requested")
    reserved = book.value("torch.reserved") or book.value("torch.allocated")
    if not isinstance(allowed, int) or not isinstance(reserved, int):
        return False
    wanted = reserved + (requested if isinstance(requested, int) else 0)
    free = book.value("oom.free")
    card_is_full = (
        isinstance(free, int)
        and isinstance(requested, int)
        and free < requested < allowed - reserved
    )
    return wanted >= allowed * (1 - _CAP_ROOM) and not card_is_full


def combined_resource(certain: str, ranking: Ranking) -> str:
    """Join what is certain with the leading cause's resource where that cause is settled."""
    if certain in ("host", "not_memory", "cap"):
        return certain
    top = ranking.top
    if top is None or top.is_open:
        return certain
    leading = resource_of(top.cause)
    if ranking.conclusive:
        return leading
    mass: dict[str, float] = {}
    for candidate, probability in zip(ranking.candidates, ranking.masses, strict=True):
        if not candidate.is_open:
            name = resource_of(candidate.cause)
            mass[name] = mass.get(name, 0.0) + probability
    outside = leading in _OFF_CARD and certain == "unknown"
    off_card = math.fsum(mass.get(name, 0.0) for name in _OFF_CARD)
    return leading if outside and off_card >= _SETTLED_MASS else certain


def answer_of(resource: str, *, conclusive: bool, recognised: bool) -> str:
    """Return cause, need_evidence, not_gpu_oom or nothing_found."""
    if not recognised:
        return "nothing_found"
    if resource in ("host", "not_memory"):
        return "not_gpu_oom"
    return "cause" if conclusive and resource in ("gpu", "cap") else "need_evidence"


def signs_of(book: FactBook, ranking: Ranking) -> tuple[Quote, ...] | None:
    """Return the places that hint at a shortage without a failure message; None if there are none.

    The tuple may be empty where a fact that was stated by hand is the sign.
    """
    keys = [
        key
        for key in ("oom.seen", *_HOST_SIGNS, *_NOT_MEMORY_SIGNS, *_TABLE_SIGNS, "host.killed")
        if book.value(key) is True
    ]
    if _above(book.facts, "gpu.used_share", FULL_CARD):
        keys.append("gpu.used_share")
    if _above(book.facts, "gpu.not_found_rows", 0):
        keys.append("gpu.not_found_rows")
    if book.value("gpu.process_table_empty") is True:
        keys += ["gpu.used"] * _above(book.facts, "gpu.used", _UNOWNED_BYTES)
    if _is_growing(book):
        keys += ["growth.per_step", "growth.steady"]
    facts = [fact for fact in (book.get(key) for key in keys) if fact is not None]
    quotes = [quote for fact in facts for quote in fact.quotes]
    by_rule = _sign_by_rule(book, ranking)
    if not facts and by_rule is None:
        return None
    return tuple(dict.fromkeys([*quotes, *(by_rule or ())]))


def _above(facts: Mapping[str, object], key: str, limit: float) -> bool:
    value = getattr(facts.get(key), "value", None)
    return isinstance(value, (int, float)) and value > limit


def _is_growing(book: FactBook) -> bool:
    """Say whether a series rises steadily; a running maximum can only rise, and shows nothing.

    One that rises by the same amount at each of many points does: batches of the same size would
    not set a new peak each time.
    """
    if book.value("growth.steady") is True and book.value("growth.quantity") != "host":
        return True
    return (
        _above(book.facts, "growth.per_step", 0)
        and _above(book.facts, "growth.points", 2)
        and book.value("growth.monotone") is True
        and book.value("growth.quantity") not in ("running-max", "host")
    )


def _sign_by_rule(book: FactBook, ranking: Ranking) -> tuple[Quote, ...] | None:
    """Return what opened the gate of a leading cause that is sure by itself, if a log did."""
    top = ranking.top
    if top is None or top.is_open or not ranking.conclusive or support(top) < _SIGN_NATS:
        return None
    decisive = frozenset(top.gate.quotes)
    facts = (book.get(key) for key in top.gate.read if key.startswith(_LOG_KEYS))
    told = any(not decisive.isdisjoint(fact.quotes) for fact in facts if fact is not None)
    return top.gate.quotes if told else None
