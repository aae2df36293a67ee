"""The book of facts of an inline test: stated facts, or what the parsers read from its texts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.given import parse_one
from oomdoctor.facts.registry import spec_of
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Kind

if TYPE_CHECKING:
    from oomdoctor.rules.source import InlineTest

ARTIFACT = "<test>"


def stated_fact(key: str, text: str) -> Fact:
    """Return the fact that `text` states, with one quote per line; UsageError where it cannot."""
    fact = parse_one(f"{key}={text}")
    lines = str(fact.value).split("\n") if spec_of(key).kind is Kind.TEXT else [text]
    quotes = tuple(
        Quote(artifact=ARTIFACT, line=number, text=line) for number, line in enumerate(lines, 1)
    )
    return replace(fact, quotes=quotes, source=None)


def book_of(test: InlineTest, *, for_lint: bool = False) -> FactBook:
    """Return the facts of a test, as diagnose or (`for_lint`) as lint puts them together.

    Stated facts are taken as they stand, nothing is derived from them; a log or config goes
    through the whole pipeline, and stated facts outrank what it says.
    """
    stated = [stated_fact(key, text) for key, text in test.facts.items()]
    if test.log is None and test.config is None:
        return FactBook().add(stated, closes=test.closed)
    from oomdoctor.memory import parts
    from oomdoctor.pipeline import assemble, gather

    if for_lint:
        return _for_lint(test, stated)
    log = () if test.log is None else _text(test.log)
    gathered = gather(log, config=None if test.config is None else _text(test.config))
    gathered.closes |= set(test.closed)
    return parts.derive(assemble(gathered, stated))


def _for_lint(test: InlineTest, stated: list[Fact]) -> FactBook:
    from oomdoctor.linting.book import book_of as book_of_job
    from oomdoctor.linting.files import read_file
    from oomdoctor.linting.jobs import Job

    file = read_file(ARTIFACT, text=_text(test.config or ""))
    if file.fault is not None:
        raise file.fault
    book = book_of_job(Job((file,)), given=stated)
    return FactBook().add(book.facts.values(), closes=(*book.closed, *test.closed))


def _text(text: str) -> str:
    """Return the text in a form that is never taken for a path."""
    return f"{text.rstrip()}\n"
