"""The book of facts of a job to estimate: flags first, then configs and the files they name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.facts.book import FactBook
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import BinaryIO

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.model.core import Fact

MOST_FILES = 20


class Configs(NamedTuple):
    """What was read of the configs of a job, with remarks on them."""

    readings: tuple[ConfigReading, ...] = ()
    notes: tuple[str, ...] = ()


def read_configs(paths: Sequence[str], *, stdin: BinaryIO | None = None) -> Configs:
    """Read configs and the files that they name; InputError where one that was given is none."""
    if not paths:
        return Configs()
    from oomdoctor.configs.links import linked
    from oomdoctor.configs.reader import read_config
    from oomdoctor.evidence.source import STDIN_ID, read_source

    waiting = list(paths)
    seen: set[str] = set()
    readings: list[ConfigReading] = []
    notes: list[str] = []
    while waiting and len(seen) < MOST_FILES:
        path = waiting.pop(0)
        mark = path if path == "-" else os.path.realpath(path)
        if mark in seen:
            continue
        seen.add(mark)
        source = read_source(path, stdin=stdin)
        name = STDIN_ID if path == "-" else path
        try:
            found = read_config(source.text, name=name, path=None if path == "-" else path)
        except InputError as error:
            if not source.notes:
                raise
            cut = "; ".join(source.notes)  # which is why it reads as if it were damaged
            raise InputError(error.message, location=error.location, hint=cut) from error
        readings += [*found, *_inside(source.text, name)]
        notes += [*source.notes, *(note for one in found for note in one.notes)]
        waiting += linked(found)
    return Configs(tuple(readings), tuple(dict.fromkeys(notes)))


def _inside(text: str, name: str) -> tuple[ConfigReading, ...]:
    """Read the commands of the containers that a manifest starts."""
    from oomdoctor.configs.reader import read_config
    from oomdoctor.estimating.manifest import commands_in

    commands = commands_in(text)
    return () if commands is None else read_config(commands + "\n", name=f"{name}.sh", path="a.sh")


def book_of(configs: Configs, given: Sequence[Fact], *, replaced: Iterable[str] = ()) -> FactBook:
    """Merge what a person states with what configs say; the job's reader adds what follows.

    `replaced` are starts of keys that configs are not asked for, because flags say it all.
    """
    from oomdoctor.gathering import joined_texts

    gone = tuple(replaced)
    read = [
        fact
        for reading in configs.readings
        for fact in reading.facts
        if not (gone and fact.key.startswith(gone))
    ]
    closes = [kind for reading in configs.readings for kind in reading.closes]
    return FactBook().add(given).add(joined_texts(read), closes=closes)


def disagreements(book: FactBook) -> tuple[str, ...]:
    """Say where files of one job disagree, and which of them was believed."""
    found = []
    for one in book.conflicts:
        kept, dropped = _file(one.kept), _file(one.dropped)
        echo = one.key.startswith("trainer.")  # what `train.` says, of the arguments alone
        if kept and dropped and kept != dropped and not echo:
            found.append(
                f"{one.key} = {one.kept.value}, as {kept} says;"
                f" {dropped} says {one.dropped.value}, which was not used"
            )
    return tuple(dict.fromkeys(found))


def _file(fact: Fact) -> str | None:
    return fact.quotes[0].artifact if fact.quotes else None
