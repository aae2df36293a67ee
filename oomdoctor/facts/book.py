"""The immutable book of facts: who said what, who won, and where sources disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Conflict, Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RANK = {Origin.STATED: 0, Origin.PROBED: 1, Origin.DERIVED: 2, Origin.ASSUMED: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactBook:
    """Facts by key with their conflicts, and the kinds of artifact that were read to the end.

    Precedence: stated > probed > derived > assumed; at equal rank the first one stays. Stated or
    probed values that disagree beyond their rounding are kept as conflicts.
    """

    facts: Mapping[str, Fact] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    closed: frozenset[str] = frozenset()

    def get(self, key: str) -> Fact | None:
        """Return the fact of `key`, or None where nobody said anything."""
        return self.facts.get(key)

    def value(self, key: str) -> bool | int | float | str | None:
        """Return the value of `key`, or None where nobody said anything."""
        fact = self.facts.get(key)
        return None if fact is None else fact.value

    def add(self, facts: Iterable[Fact], *, closes: Iterable[str] = ()) -> FactBook:
        """Return a new book that also holds `facts` and has `closes` as closed artifact kinds."""
        merged = dict(self.facts)
        conflicts = list(self.conflicts)
        for fact in facts:
            held = merged.get(fact.key)
            if held is None:
                merged[fact.key] = fact
                continue
            kept, dropped = _prefer(held, fact)
            merged[fact.key] = kept
            if _contradict(kept, dropped):
                conflicts.append(Conflict(key=fact.key, kept=kept, dropped=dropped))
        return FactBook(
            facts=merged, conflicts=tuple(conflicts), closed=self.closed | frozenset(closes)
        )

    def without(self, keys: Iterable[str]) -> FactBook:
        """Return a new book that lacks `keys`."""
        gone = set(keys)
        return replace(self, facts={k: f for k, f in self.facts.items() if k not in gone})


def _prefer(held: Fact, new: Fact) -> tuple[Fact, Fact]:
    """Return (kept, dropped): the stronger origin, at equal origin the finer rounding."""
    if _RANK[new.origin] != _RANK[held.origin]:
        return (new, held) if _RANK[new.origin] < _RANK[held.origin] else (held, new)
    return (new, held) if _agree(held, new) and new.slack < held.slack else (held, new)


def _agree(one: Fact, other: Fact) -> bool:
    a, b = one.value, other.value
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= one.slack + other.slack
    return a == b


def _contradict(kept: Fact, dropped: Fact) -> bool:
    """Say whether two sources disagree: defaults and formulas give way without a word."""
    said = (Origin.STATED, Origin.PROBED)
    return kept.origin in said and dropped.origin in said and not _agree(kept, dropped)
