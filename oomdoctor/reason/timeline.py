"""Find the failure that came first in time; what follows from it is not the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import MEMORY_KINDS, Fact
from oomdoctor.model.enums import Origin
from oomdoctor.reason import echo
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import Failure, Quote

MOST_ECHOES = 16
# Another fault, and an end without a word: whatever else failed says more.
_TELLS_LESS = frozenset({"other", "lost"})
_POISON = frozenset({"assert", "illegal-access", "device-lost"})


def in_time(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Sort failures by time where it is known, else keep the order of the input.

    Within one input whose failures have no stamps of their own the order of its lines counts.
    Inputs whose time compares with nothing keep their order behind the others, but what the
    launcher blames goes first.
    """
    timed = _in_line_order(failures, _timed(failures))
    inputs = {failure.line_quote.artifact for failure in failures}
    if len(inputs) < 2 and any(when is None for when in timed):
        return tuple(failures)
    indexes = sorted(range(len(failures)), key=lambda at: _time_key(timed[at], failures[at], at))
    return tuple(failures[at] for at in indexes)


def _time_key(when: float | None, failure: Failure, at: int) -> tuple[bool, bool, float, int]:
    if when is None:
        return True, not failure.blamed, 0.0, at
    return False, False, when, at


def _timed(failures: Sequence[Failure]) -> list[float | None]:
    """Return the time of each failure, by its own stamp or by the nearest one before it."""
    if any(failure.when is not None for failure in failures):
        return [failure.when for failure in failures]
    stamps = [failure.stamp or failure.near for failure in failures]
    if not any(stamps):
        return [None] * len(failures)
    from oomdoctor.evidence.instant import instant_of
    from oomdoctor.reason.clock import Clock, Told

    instants = [instant_of(stamp) if stamp else None for stamp in stamps]
    inputs = {failure.line_quote.artifact for failure in failures}
    if len(inputs) == 1 and all(one is not None and one.clock == "boot" for one in instants):
        return [one.seconds for one in instants if one is not None]
    clock = Clock({"": Told([one for one in instants if one is not None])})
    return [None if one is None else clock.time_of("", one) for one in instants]


def _in_line_order(
    failures: Sequence[Failure], timed: Sequence[float | None]
) -> list[float | None]:
    """Let no line of an input be before an earlier one, unless all its stamps are of one kind.

    Two loggers of a process may write times of two zones, and a line without a stamp has the time
    of an earlier one.
    """
    settled = list(timed)
    inputs: dict[str, list[int]] = {}
    for at, failure in enumerate(failures):
        inputs.setdefault(failure.line_quote.artifact, []).append(at)
    for places in inputs.values():
        if len({_shape(failures[at].stamp) for at in places}) == 1 and failures[places[0]].stamp:
            continue
        latest: float | None = None
        for at in sorted(places, key=lambda at: failures[at].order):
            when = settled[at]
            if when is not None:
                latest = when if latest is None else max(latest, when)
            settled[at] = latest
    return settled


def _shape(stamp: str | None) -> str:
    return "".join("0" if sign.isdecimal() else sign for sign in stamp or "").replace("00", "0")


def first_failure(failures: Sequence[Failure]) -> Failure | None:
    """Return the first failure in time that is not a consequence, with its repetitions merged.

    `failures` are in input order. A memory failure goes before one of no known kind or an end
    without a word, and one that ended the run before one that was caught. Where no stamp of its
    own places a failure, the rank that the launcher saw fail first goes before the others.
    """
    ordered = mark_consequences(in_time(failures))
    pool = [failure for failure in ordered if not failure.consequence] or list(ordered)
    pool = [failure for failure in pool if not _is_caught(failure)] or pool
    pool = [failure for failure in pool if failure.kind not in _TELLS_LESS] or pool
    pool = [failure for failure in pool if failure.kind != "other"] or pool
    if not pool:
        return None
    first = pool[0]
    if first.stamp is None and not first.blamed:
        first = next((failure for failure in pool if failure.blamed), first)
    return _with_repetitions(first, ordered)


def mark_consequences(ordered: Sequence[Failure]) -> tuple[Failure, ...]:
    """Mark what follows from an earlier failure.

    After a device-side assertion or an address fault every later call of the process fails, and a
    rank that ran out of memory makes the others' collectives time out. What another input tells
    is told by `echo`.
    """
    marked: list[Failure] = []
    kinds: set[str] = set()
    poisoned: dict[str, set[int | None]] = {}
    short = [failure for failure in ordered if _is_short(failure)]
    for failure in ordered:
        ranks = poisoned.setdefault(failure.line_quote.artifact, set())
        hit = ranks if failure.rank is None else ranks & {None, failure.rank}
        follows = (
            failure.consequence
            or (failure.kind in MEMORY_KINDS and bool(hit))
            or (failure.kind == "collective" and not kinds.isdisjoint(MEMORY_KINDS))
            or (is_absurd(failure) and "collective" in kinds)
            or _waited_in_vain(failure, short)
            or echo.follows(failure, ordered)
        )
        marked.append(replace(failure, consequence=follows))
        kinds.add(failure.kind)
        if failure.kind in _POISON:
            ranks.add(failure.rank)
    return tuple(marked)


def _is_short(failure: Failure) -> bool:
    plausible = failure.kind == "gpu-oom" and not is_absurd(failure)
    return plausible and failure.rank is not None and not _is_caught(failure)


def _waited_in_vain(failure: Failure, short: Sequence[Failure]) -> bool:
    """Say whether a rank waited for another one, of those in `short`, that ran out of memory.

    Logs of several ranks in one file are seldom in order; where no stamps tell, a plausible
    shortage on another rank came before the time-out, since no rank works on after one.
    """
    return (
        failure.kind == "collective"
        and failure.rank is not None
        and any(
            other.rank != failure.rank and None in (other.stamp, failure.stamp) for other in short
        )
    )


def timeline_facts(failures: Sequence[Failure], first: Failure | None) -> tuple[Fact, ...]:
    """Return what the order of the failures says, as derived facts (readers' own facts win)."""
    ordered = mark_consequences(in_time(failures))
    ooms = [failure for failure in ordered if failure.kind == "gpu-oom"]
    facts: list[Fact] = []
    if ooms:
        facts.append(_derived("oom.events", len(ooms)))
        ranks = {failure.rank for failure in ooms if failure.rank is not None}
        if ranks:
            facts.append(_derived("oom.failed_ranks", len(ranks)))
    if first is not None and first.rank is not None:
        facts.append(_derived("run.rank", first.rank))
    if first is not None and any(oom.consequence for oom in ooms):
        key = {"assert": "assert.before_oom", "collective": "collective.before_oom"}.get(first.kind)
        if key is not None:
            facts.append(replace(_derived(key, value=True), quotes=(first.line_quote,)))
    return tuple(facts)


def echoes(failures: Sequence[Failure], first: Failure) -> tuple[Quote, ...]:
    """Return the lines that tell the first failure again, or tell what followed from it."""
    told = [
        failure.line_quote
        for failure in mark_consequences(in_time(failures))
        if failure.consequence or failure.kind == first.kind
    ]
    return tuple(dict.fromkeys(one for one in told if one != first.line_quote))[:MOST_ECHOES]


def _with_repetitions(first: Failure, ordered: Sequence[Failure]) -> Failure:
    """Add the facts that a repetition of the same message carries (its traceback, usually)."""
    held = {fact.key for fact in first.facts}
    added: list[Fact] = []
    for other in ordered:
        if other is first or not _same_event(first, other):
            continue
        for fact in other.facts:
            if fact.key not in held:
                held.add(fact.key)
                added.append(fact)
    return replace(first, facts=(*first.facts, *added)) if added else first


def _same_event(one: Failure, other: Failure) -> bool:
    figures = ("oom.requested", "torch.allocated", "oom.free")
    stated = [value_of(one, key) for key in figures]
    if one.kind != other.kind or one.rank != other.rank or all(value is None for value in stated):
        return False
    return stated == [value_of(other, key) for key in figures]


def value_of(failure: Failure, key: str) -> bool | int | float | str | None:
    """Return the value that a failure's own facts give a key."""
    return next((fact.value for fact in failure.facts if fact.key == key), None)


def _is_caught(failure: Failure) -> bool:
    return value_of(failure, "oom.caught") is True


def is_absurd(failure: Failure) -> bool:
    """Say whether the requested size cannot be meant: a broken number."""
    return value_of(failure, "oom.absurd_size") is True


def _derived(key: str, value: float) -> Fact:
    return Fact(key=key, value=value, origin=Origin.DERIVED, source="order of the failures")
