"""Facts that somebody states in own words beside a log: in notes, or in an issue that was pasted.

    "Training is fine, it always fails during evaluation, memory creeps up."
        -> run.phase=eval, growth.monotone=true

They fill in what nothing else tells, and are quoted by their line.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence import symptoms
from oomdoctor.facts.given import parse_given
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Origin
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.facts.book import FactBook

MOST_LINES = 40
_LEAST_WORDS, _MOST_CHARS = 6, 1200
_KEYS = ("run.phase", "run.late_step", "run.first_step", "run.epoch_boundary", "resume.on")
_TOLD = (*_KEYS, "growth.", "trial.smaller_batch", "history.changed")
_SOURCE = "what somebody says in own words"


def said(readings: Sequence[ConfigReading], book: FactBook) -> tuple[Fact, ...]:
    """Return what the prose of notes states and the book does not know."""
    lines = [
        (reading.source_id, number, line)
        for reading in readings
        if reading.dialect == "notes"
        for number, line in _prose(reading.text)
    ]
    if not any(_tells_failure(line) for _, _, line in lines):
        return ()
    found: dict[str, Fact] = {}
    for artifact, number, line in lines[:MOST_LINES]:
        for fact in parse_given(symptoms.read(line)):
            quote = Quote(artifact=artifact, line=number, text=line)
            new = replace(fact, origin=Origin.DERIVED, source=_SOURCE, quotes=(quote,))
            found.setdefault(fact.key, new)
    return tuple(_unknown(found.values(), book))


def _unknown(found: Iterable[Fact], book: FactBook) -> Iterator[Fact]:
    """Yield what may be told in words, and what no growth of the log's own contradicts."""
    grown = any(key.startswith("growth.") for key in book.facts)
    for fact in found:
        if fact.key in book.facts or not fact.key.startswith(_TOLD):
            continue
        if not (grown and fact.key.startswith("growth.")):
            yield fact


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are sentences, neither settings nor commands nor code."""
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) >= _LEAST_WORDS and len(line) <= _MOST_CHARS and not _technical(line, words):
            yield number, line


def _technical(line: str, words: Sequence[str]) -> bool:
    if _code().search(line) is not None:
        return True
    plain = sum(word.strip(".,;:!?()'\"").isalpha() for word in words)
    return plain < 0.6 * len(words)


@cache
def _code() -> re.Pattern[str]:
    return re.compile(r"[{}=<>|]|\s--?\w|^\s*(?:#|//|[\w.\-]{1,60}:(?:\s|$)|[$>%] |-\s)|\w\(")


def _tells_failure(line: str) -> bool:
    return any(clause.failed for clause in symptoms.clauses_of(line.lower()))
