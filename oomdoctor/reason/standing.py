"""How a lint finding stands: with which severity, on what assumptions, in which versions.

An error needs positive evidence: a gate that holds only through something assumed (a default, a
version that nobody stated) is a warning at most and says what was assumed. What a version refuses
is an error in that version, a warning where the version is a guess, a remark where it still works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.book import FactBook
from oomdoctor.model.enums import Origin, Severity, Truth
from oomdoctor.reason.narrate import print_fact
from oomdoctor.record import NamedTuple
from oomdoctor.rules.evaluate import condition_verdict
from oomdoctor.rules.versions import version_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Fact, Verdict
    from oomdoctor.rules.shape import Rule


class Standing(NamedTuple):
    """The severity that a finding has here, what it assumes, and what it says of versions."""

    severity: Severity
    assumed: tuple[str, ...] = ()
    breaks: str | None = None


def standing_of(rule: Rule, gate: Verdict, book: FactBook) -> Standing | None:
    """Return how a rule whose gate holds stands; None where its version makes it no finding."""
    if gate.truth is not Truth.TRUE:
        return None
    severity, breaks = rule.severity, None
    assumed = list(_assumptions(rule, gate, book))
    if rule.breaks_from:
        found = _broken(rule, book)
        if found is None:
            return None
        severity, breaks, guess = found
        if guess is not None:
            assumed.append(guess)
    if assumed and severity is Severity.ERROR:
        severity = Severity.WARNING
    return Standing(severity, tuple(dict.fromkeys(assumed)), breaks)


def _assumptions(rule: Rule, gate: Verdict, book: FactBook) -> tuple[str, ...]:
    """Return in words what is assumed of the facts read, where the gate needs any of it."""
    guesses = [fact for fact in map(book.get, sorted(gate.read)) if fact is not None]
    guesses = [fact for fact in guesses if fact.origin is Origin.ASSUMED]
    if not guesses:
        return ()
    certain = {key: fact for key, fact in book.facts.items() if fact.origin is not Origin.ASSUMED}
    without = FactBook(facts=certain, conflicts=book.conflicts, closed=book.closed)
    if condition_verdict(rule.when, without).truth is Truth.TRUE:
        return ()
    roots = dict.fromkeys(key for fact in guesses for key in _roots(fact, book, set()))
    return tuple(_words(fact) for fact in map(book.get, roots) if fact is not None)


def _roots(fact: Fact, book: FactBook, seen: set[str]) -> Iterator[str]:
    """Yield the keys of what was assumed in the first place: a default, a version, a size."""
    if fact.key in seen:
        return
    seen.add(fact.key)
    if not fact.rests_on:
        yield fact.key
    for key in fact.rests_on:
        below = book.get(key)
        if below is not None and below.origin is Origin.ASSUMED:
            yield from _roots(below, book, seen)


def _words(fact: Fact) -> str:
    return f"{fact.key} = {print_fact(fact)}" + (f" ({fact.source})" if fact.source else "")


def _broken(rule: Rule, book: FactBook) -> tuple[Severity, str | None, str | None] | None:
    """Compare the versions in use with those that refuse; None where a pin keeps it working.

    Gives the severity, the sentence about versions, and the version that was guessed.
    """
    works: list[str] = []
    for package, first in rule.breaks_from.items():
        fact = book.get(f"env.{package}")
        used, refusing = version_key(str(fact.value)) if fact else None, version_key(first)
        if fact is None or used is None or refusing is None:
            continue
        if used >= refusing:
            said = f"refused from {package} {first} on; in use: {fact.value}"
            guessed = fact.origin is Origin.ASSUMED
            if guessed:
                said = f"refused from {package} {first} on"
            return rule.severity, said, _words(fact) if guessed else None
        if fact.origin is Origin.ASSUMED:
            return None
        works.append(f"works with {package} {fact.value}; refused from {first} on")
    if works:
        return Severity.INFO, "; ".join(works), None
    listed = " or ".join(f"{package} {first}" for package, first in rule.breaks_from.items())
    lowered = Severity.WARNING if rule.severity is Severity.ERROR else rule.severity
    return lowered, f"refused from {listed} on; the version in use is not known", None
