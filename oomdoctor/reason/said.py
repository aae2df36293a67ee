"""Facts that somebody states in own words: in notes beside a log, or in a report that was pasted.

    "Training is fine, it always fails during evaluation, memory creeps up."
        -> run.phase=eval, growth.monotone=true

They fill in what nothing else tells, and are quoted by their line.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

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
_TRIED = ("trial.smaller_batch", "history.changed")
_KEYS = ("run.phase", "run.late_step", "run.first_step", "run.epoch_boundary", "resume.on")
_TOLD = (*_KEYS, *_TRIED, "growth.")
_SOURCE = "what somebody says in own words"


def said(
    readings: Sequence[ConfigReading], report: Sequence[Quote], book: FactBook
) -> tuple[Fact, ...]:
    """Return what the prose of notes and of a report states and the book does not know."""
    lines = [quote for reading in readings for quote in _notes(reading)]
    lines += [one for one in report if _is_prose(one.text) and _starts(one.text)]
    if not lines:
        return ()
    from oomdoctor.evidence import symptoms  # hundreds of patterns, which most logs do without

    failed = any(
        clause.failed for line in lines for clause in symptoms.clauses_of(line.text.lower())
    )
    found: dict[str, Fact] = {}
    for line in lines[:MOST_LINES]:
        for fact in parse_given(symptoms.read(line.text)):
            new = replace(fact, origin=Origin.DERIVED, source=_SOURCE, quotes=(line,))
            found.setdefault(fact.key, new)
    told = _TOLD if failed else _TRIED
    return tuple(one for one in _unknown(found.values(), book) if one.key.startswith(told))


def _notes(reading: ConfigReading) -> list[Quote]:
    if reading.dialect != "notes":
        return []
    lines = enumerate(reading.text.split("\n"), 1)
    return [
        Quote(artifact=reading.source_id, line=number, text=line)
        for number, line in lines
        if _is_prose(line)
    ]


def _starts(line: str) -> bool:
    """Say whether a line starts as a sentence does, and not as what a program prints."""
    return _start().match(line) is not None and ": " not in line


def _unknown(found: Iterable[Fact], book: FactBook) -> Iterator[Fact]:
    """Yield what may be told in words, and what no growth of the log's own contradicts."""
    grown = any(key.startswith("growth.") for key in book.facts)
    for fact in found:
        if fact.key not in book.facts and not (grown and fact.key.startswith("growth.")):
            yield fact


def _is_prose(line: str) -> bool:
    """Say whether a line is a sentence, and neither a setting nor a command nor code."""
    words = line.split()
    return len(words) >= _LEAST_WORDS and len(line) <= _MOST_CHARS and not _technical(line, words)


def _technical(line: str, words: Sequence[str]) -> bool:
    if _code().search(line) is not None:
        return True
    plain = sum(word.strip(".,;:!?()'\"").isalpha() for word in words)
    return plain < 0.6 * len(words)


@cache
def _start() -> re.Pattern[str]:
    return re.compile(r"\s*(?:[A-Z][a-z]*|I) [a-z]")


@cache
def _code() -> re.Pattern[str]:
    return re.compile(r"[{}=<>|]|\s--?\w|^\s*(?:#|//|[\w.\-]{1,60}:(?:\s|$)|[$>%] |-\s)|\w\(")
