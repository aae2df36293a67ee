"""The machinery of derived facts: a function, the keys it reads, and the fact it gives.

A derivation may read only what it declares; the origin, the quotes and the words of the new fact
come from the facts it really looked at. Whatever rests on an assumed fact is itself assumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple, dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Quote, Value


class MissingFactError(Exception):
    """A derivation cannot be made because a fact it needs is absent or of another kind."""


class Outcome(NamedTuple):
    """What a derivation found: the value, the formula in words, the half width of rounding.

    `guess` marks an outcome that is itself an assumption, whatever it was derived from; `printed`
    names the key whose figure it is as it stands, so that it is no less stated than that one.
    """

    value: Value
    source: str
    slack: float = 0
    guess: bool = False
    printed: str | None = None


class Inputs:
    """The declared facts of one derivation; remembers which of them were looked at."""

    __slots__ = ("_allowed", "_facts", "closed", "used")

    def __init__(
        self, facts: Mapping[str, Fact], allowed: Iterable[str], *, closed: frozenset[str]
    ) -> None:
        """Take all facts, the keys that may be read, and the kinds of artifact read to the end."""
        self._facts = facts
        self._allowed = frozenset(allowed)
        self.closed = closed
        self.used: dict[str, Fact] = {}

    def get(self, key: str) -> Fact | None:
        """Return the fact of a declared key, or None; an undeclared key is a programming error."""
        if key not in self._allowed:
            raise KeyError(key)
        fact = self._facts.get(key)
        if fact is not None:
            self.used[key] = fact
        return fact

    def settled(self, key: str) -> str | None:
        """Return a text without counting it as a guess where a complete config leaves it out.

        A default that holds in every version is no assumption about the job once its config was
        read to the end; in all other cases it counts as any fact does.
        """
        if "train-config" in self.closed and key in self._allowed:
            fact = self._facts.get(key)
            if fact is not None and fact.origin is Origin.ASSUMED and isinstance(fact.value, str):
                return fact.value
        return self.maybe_text(key)

    def glance(self, key: str) -> str:
        """Return a whole text that is only searched, empty where absent; it is not quoted."""
        if key not in self._allowed:
            raise KeyError(key)
        fact = self._facts.get(key)
        return fact.value if fact is not None and isinstance(fact.value, str) else ""

    def maybe_number(self, key: str) -> float | None:
        """Return a number, or None where the fact is absent or not a number."""
        fact = self.get(key)
        value = None if fact is None else fact.value
        return None if isinstance(value, (bool, str)) else value

    def maybe_int(self, key: str) -> int | None:
        """Return a number as an integer, or None where the fact is absent or not a number."""
        value = self.maybe_number(key)
        return None if value is None else int(value)

    def maybe_flag(self, key: str) -> bool | None:
        """Return a truth value, or None where the fact is absent or of another kind."""
        fact = self.get(key)
        return fact.value if fact is not None and isinstance(fact.value, bool) else None

    def maybe_text(self, key: str) -> str | None:
        """Return a text, or None where the fact is absent or of another kind."""
        fact = self.get(key)
        return fact.value if fact is not None and isinstance(fact.value, str) else None

    def number(self, key: str) -> float:
        """Return a number; without it the derivation gives nothing."""
        value = self.maybe_number(key)
        if value is None:
            raise MissingFactError(key)
        return value

    def whole(self, key: str) -> int:
        """Return a number as an integer; without it the derivation gives nothing."""
        return int(self.number(key))

    def flag(self, key: str) -> bool:
        """Return a truth value; without it the derivation gives nothing."""
        value = self.maybe_flag(key)
        if value is None:
            raise MissingFactError(key)
        return value

    def text(self, key: str) -> str:
        """Return a text; without it the derivation gives nothing."""
        value = self.maybe_text(key)
        if value is None:
            raise MissingFactError(key)
        return value

    def slack(self, *keys: str) -> float:
        """Return the summed rounding of the given facts (0 for absent ones)."""
        return sum(fact.slack for fact in map(self.get, keys) if fact is not None)

    def first(self, *keys: str) -> str:
        """Return the first of `keys` that is a number; without one the derivation gives nothing."""
        for key in keys:
            if self.maybe_number(key) is not None:
                return key
        raise MissingFactError(keys[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """How one fact follows from others."""

    key: str
    reads: tuple[str, ...]
    work: Callable[[Inputs], Outcome | None]


def derives(
    key: str, *, reads: tuple[str, ...]
) -> Callable[[Callable[[Inputs], Outcome | None]], Derivation]:
    """Turn a function into the derivation of `key`, which may read `reads` and nothing else."""

    def wrap(work: Callable[[Inputs], Outcome | None]) -> Derivation:
        return Derivation(key=key, reads=reads, work=work)

    return wrap


def apply(book: FactBook, steps: Iterable[Derivation]) -> FactBook:
    """Run the derivations in order; later ones see what earlier ones gave.

    What somebody stated or probed is never derived again; an assumption is, if that can be done.
    """
    facts = dict(book.facts)
    new: list[Fact] = []
    for step in steps:
        held = facts.get(step.key)
        if held is not None and held.origin is not Origin.ASSUMED:
            continue
        fact = run(step, facts, closed=book.closed)
        if fact is None or (held is not None and fact.origin is Origin.ASSUMED):
            continue
        facts[step.key] = fact
        new.append(fact)
    return book.add(new)


def run(step: Derivation, facts: Mapping[str, Fact], *, closed: frozenset[str]) -> Fact | None:
    """Make the fact of one derivation, or None where something it needs is missing."""
    inputs = Inputs(facts, step.reads, closed=closed)
    try:
        outcome = step.work(inputs)
    except (MissingFactError, ZeroDivisionError, OverflowError):
        return None
    if outcome is None:
        return None
    read = inputs.used.values()
    guesses = tuple(fact.key for fact in read if fact.origin is Origin.ASSUMED)
    figure = facts.get(outcome.printed) if outcome.printed and not guesses else None
    if figure is not None:
        return replace(figure, key=step.key, source=outcome.source)
    return Fact(
        key=step.key,
        value=outcome.value,
        origin=Origin.ASSUMED if guesses or outcome.guess else Origin.DERIVED,
        slack=outcome.slack,
        quotes=_union(read),
        source=outcome.source,
        rests_on=guesses,
    )


def share(
    part: float, whole: float, *, part_slack: float, whole_slack: float
) -> tuple[float, float]:
    """Return part / whole in 0..1 with the half width that the rounding of both gives it."""
    value = part / whole
    return min(1.0, max(0.0, value)), (part_slack + abs(value) * whole_slack) / whole


def _union(facts: Iterable[Fact]) -> tuple[Quote, ...]:
    """Return the quotes of all facts in order, each place once."""
    return tuple(dict.fromkeys(quote for fact in facts for quote in fact.quotes))
