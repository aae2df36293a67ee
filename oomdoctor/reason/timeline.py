"""Find the failure that came first in time; what follows from it is not the cause."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.model.plan import RankSummary
from oomdoctor.record import replace
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import Failure, Quote

MOST_ECHOES = 16
MEMORY = frozenset({"gpu-oom", "host-oom", "shm"})
_POISON = frozenset({"assert", "illegal-access"})
_WORDS = {
    "gpu-oom": "GPU out of memory",
    "host-oom": "host memory exhausted or process killed",
    "shm": "shared memory too small",
    "assert": "device-side assertion",
    "illegal-access": "illegal memory access",
    "collective": "collective operation failed",
    "other": "another failure",
}


def in_time(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Sort failures by time stamp where all stamps share one format, else keep input order."""
    keys = [_stamp_key(failure.stamp) for failure in failures]
    shapes = {key[0] for key in keys if key is not None}
    if any(key is None for key in keys) or len(shapes) != 1:
        return tuple(failures)
    pairs = sorted(
        zip(keys, range(len(failures)), strict=True), key=lambda pair: (pair[0], pair[1])
    )
    return tuple(failures[index] for _, index in pairs)


def first_failure(failures: Sequence[Failure]) -> Failure | None:
    """Return the first failure in time that is not a consequence, with its repetitions merged.

    `failures` are in input order. A memory failure goes before one of no known kind, and one that
    ended the run before one that was caught.
    """
    ordered = mark_consequences(in_time(failures))
    pool = [failure for failure in ordered if not failure.consequence] or list(ordered)
    pool = [failure for failure in pool if not _is_caught(failure)] or pool
    pool = [failure for failure in pool if failure.kind != "other"] or pool
    if not pool:
        return None
    return _with_repetitions(pool[0], ordered)


def mark_consequences(ordered: Sequence[Failure]) -> tuple[Failure, ...]:
    """Mark what follows from an earlier failure of the same input.

    After a device-side assertion or an address fault every later call of the process fails, and a
    rank that ran out of memory makes the others' collectives time out.
    """
    marked: list[Failure] = []
    kinds: set[str] = set()
    poisoned: dict[str, set[int | None]] = {}
    for failure in ordered:
        ranks = poisoned.setdefault(failure.line_quote.artifact, set())
        hit = ranks if failure.rank is None else ranks & {None, failure.rank}
        follows = (
            failure.consequence
            or (failure.kind in MEMORY and bool(hit))
            or (failure.kind == "collective" and not kinds.isdisjoint(MEMORY))
            or (_is_absurd(failure) and "collective" in kinds)
        )
        marked.append(replace(failure, consequence=follows))
        kinds.add(failure.kind)
        if failure.kind in _POISON:
            ranks.add(failure.rank)
    return tuple(marked)


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


def fold_ranks(failures: Sequence[Failure]) -> tuple[RankSummary, ...]:
    """Summarise the first failure of each rank; ranks that agree become one entry."""
    groups: dict[tuple[str, bool], list[Failure]] = {}
    seen: set[int] = set()
    for failure in mark_consequences(in_time(failures)):
        if failure.rank is None or failure.rank in seen:
            continue
        seen.add(failure.rank)
        groups.setdefault((_headline(failure), failure.consequence), []).append(failure)
    return tuple(
        RankSummary(
            ranks=tuple(sorted(one.rank for one in group if one.rank is not None)),
            failed=True,
            headline=f"{words} (follows from an earlier failure)" if follows else words,
            order=min(one.order for one in group),
        )
        for (words, follows), group in groups.items()
    )


def echoes(failures: Sequence[Failure], first: Failure) -> tuple[Quote, ...]:
    """Return the lines that tell the first failure again, or tell what followed from it."""
    told = [
        failure.line_quote
        for failure in mark_consequences(in_time(failures))
        if failure.consequence or failure.kind == first.kind
    ]
    return tuple(dict.fromkeys(one for one in told if one != first.line_quote))[:MOST_ECHOES]


def _headline(failure: Failure) -> str:
    words = _WORDS.get(failure.kind, _WORDS["other"])
    requested = _value(failure, "oom.requested")
    if isinstance(requested, int) and not _is_absurd(failure):
        words = f"{words}, {format_size(requested)} requested"
    phase = _value(failure, "run.phase")
    return f"{words} in {phase}" if isinstance(phase, str) else words


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
    stated = [_value(one, key) for key in figures]
    if one.kind != other.kind or one.rank != other.rank or all(value is None for value in stated):
        return False
    return stated == [_value(other, key) for key in figures]


def _value(failure: Failure, key: str) -> bool | int | float | str | None:
    return next((fact.value for fact in failure.facts if fact.key == key), None)


def _is_caught(failure: Failure) -> bool:
    return _value(failure, "oom.caught") is True


def _is_absurd(failure: Failure) -> bool:
    return _value(failure, "oom.absurd_size") is True


def _derived(key: str, value: float) -> Fact:
    return Fact(key=key, value=value, origin=Origin.DERIVED, source="order of the failures")


@cache
def _digits() -> re.Pattern[str]:
    return re.compile(r"\d+")


def _stamp_key(stamp: str | None) -> tuple[str, tuple[float, ...]] | None:
    """Return (shape, numbers): stamps compare only where everything but the digits is equal.

    Fractions may differ in length, so the last group is compared as decimals of a second where a
    dot or comma stands before it.
    """
    if not stamp:
        return None
    text = stamp.strip().strip("[]")
    groups = _digits().findall(text)
    if not groups:
        return None
    shape = _digits().sub("0", text)
    numbers = [float(group) for group in groups]
    if shape.endswith((".0", ",0", ".0Z", ",0Z")):
        numbers[-1] = float(f"0.{groups[-1]}")
    return shape, tuple(numbers)
