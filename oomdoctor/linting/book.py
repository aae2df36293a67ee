"""The book of facts of a job: what was stated, its files, versions, defaults, what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.book import FactBook
from oomdoctor.gathering import joined_texts
from oomdoctor.model.enums import Origin
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.linting.jobs import Job
    from oomdoctor.model.core import Fact

MACHINES = ("gpu.", "host.", "dist.", "env.")


def book_of(job: Job, *, given: Sequence[Fact] = (), versions: Sequence[Fact] = ()) -> FactBook:
    """Merge the facts of all files of a job and derive what follows from them.

    `given` outranks everything that is read; `versions` are those found beside the job or in the
    environment. What a framework pins and what it leaves out is assumed last.
    """
    readings = [reading for file in job.files for reading in file.readings]
    book = FactBook().add(given)
    read = [fact for reading in readings for fact in supposed(reading)]
    if any(fact.key == "gpu.name" for fact in given):
        read = [fact for fact in read if not _of_card(fact.key)]
    facts = joined_texts(read)
    book = book.add(facts, closes=[kind for reading in readings for kind in reading.closes])
    return completed(book.add(versions))


def supposed(reading: ConfigReading) -> list[Fact]:
    """Return a reading's facts; of comments only the machine is believed, and that is assumed."""
    rows = reading.text.split("\n")
    made: list[Fact] = []
    for fact in reading.facts:
        if fact.origin is not Origin.STATED or not _in_comment(fact, rows):
            made.append(fact)
        elif fact.key.startswith(MACHINES):
            made.append(replace(fact, origin=Origin.ASSUMED, source="a comment says so"))
    return made


def _in_comment(fact: Fact, rows: Sequence[str]) -> bool:
    """Say whether all that a fact quotes stands behind a `#` that opens a comment."""
    if len(fact.quotes) != 1 or fact.quotes[0].column is None:
        return False
    line, column = fact.quotes[0].line, fact.quotes[0].column
    front = rows[line - 1][: column - 1] if 0 < line <= len(rows) else ""
    at = front.find("#")
    while at > 0 and front[at - 1] not in " \t":
        at = front.find("#", at + 1)
    return at >= 0 and front.count('"', 0, at) % 2 == 0 and not front.startswith("#SBATCH")


def _of_card(key: str) -> bool:
    """Say whether a fact is about a card, which is another one where a card is stated."""
    return key.startswith("gpu.") and key != "gpu.count"


def completed(book: FactBook) -> FactBook:
    """Return a book of what was read with what is assumed and all that follows from it."""
    from oomdoctor.facts import derive, derive_lint
    from oomdoctor.facts.defaults import assumed
    from oomdoctor.facts.pins import pinned
    from oomdoctor.memory import parts, physics

    book = book.add(pinned(book))
    book = derive.derive(book.add(assumed(book)))
    return parts.derive(derive_lint.derive(physics.derive(book)))
