"""Did-you-mean for misspelt keys: near misses of keys that the framework takes at that place.

learnig_rate: 1e-4            learning_rate
gradientCheckpointing: true   gradient_checkpointing
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import dialects, vocabulary
from oomdoctor.configs.setting import Lines
from oomdoctor.facts.tables import table
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.model.core import Quote

LEAST = 4
"""Shorter keys have too many neighbours."""
LONG = 9
"""From this length on two wrong letters are a near miss, too."""
SCRIPTS = ("python", "unsloth", "nanogpt", "diffusers", "torchtitan")
LIBRARIES = ("hf_trainer", "trl")
"""Dialects whose keys a script of one's own takes beside names of its own."""


class Misspelling(NamedTuple):
    """A key as settings spell it, where it stands, and the key that is meant."""

    key: str
    quote: Quote
    suggestion: str


@cache
def _levels() -> Mapping[str, Mapping[str, frozenset[str]]]:
    held = table("schemas")["levels"]
    return {
        dialect: {level: frozenset(names) for level, names in levels.items()}
        for dialect, levels in held.items()
    }


@cache
def _gone() -> frozenset[str]:
    """Return arguments of the trainer that no version of today has: suggested only for lack."""
    held = table("schemas")["versions"]["transformers.TrainingArguments"]
    return frozenset(name for name, (_, gone) in held.items() if gone)


@cache
def _trainers() -> frozenset[str]:
    """Return the arguments of the trainer itself, which a script of one's own hands on."""
    return _levels()["python"]["trainingarguments"]


def misspelt(reading: ConfigReading) -> tuple[Misspelling, ...]:
    """Return the near misses among the keys of a config whose dialect's keys are all known."""
    levels = _levels().get(reading.dialect)
    if reading.dialect in SCRIPTS:
        levels = {**_levels()["python"], **(levels or {})}
    own = reading.dialect in LIBRARIES and any(fact.key == "job.script" for fact in reading.facts)
    found: dict[str, Misspelling] = {}
    for path, quote in _keys(reading) if levels is not None else ():
        for at, name in enumerate(path):
            level = ".".join(path[:at])
            key = f"{level}.{name}" if level else name
            known = levels.get(level) if levels is not None else None
            if known is None or key in found or _is_known(name, known, reading.dialect):
                continue
            meant = _nearest(name, known & _trainers() if own else known)
            if meant is not None:
                found[key] = Misspelling(key, _place(reading, name, quote), meant)
    return tuple(found.values())


def _keys(reading: ConfigReading) -> Iterator[tuple[tuple[str, ...], Quote]]:
    for fact in reading.facts:
        if fact.key == "job.settings":
            lines = str(fact.value).split("\n")
            for line, quote in zip(lines, fact.quotes, strict=False):
                yield tuple(line.partition(" = ")[0].split(".")), quote


@cache
def _own(dialect: str) -> frozenset[str]:
    """Return the last parts of all keys that the dialect's table reads."""
    keys = dialects.named(dialect).keys
    return frozenset(part for key in keys for part in key.split("."))


def _is_known(name: str, known: frozenset[str], dialect: str) -> bool:
    plain = name in known or name in vocabulary.table() or name in _own(dialect)
    return plain or len(name) < LEAST or name.isdecimal() or name.startswith("_")


def _nearest(name: str, known: frozenset[str]) -> str | None:
    """Return the one key that a name is a near miss of; None for none or several."""
    bare = name.replace("_", "")
    same = sorted(word for word in known if word.replace("_", "") == bare)
    if same:
        return same[0]
    most = 2 if len(name) >= LONG else 1
    scored = []
    for word in known:
        near = word[:1] == name[:1] and abs(len(word) - len(name)) <= most
        if near and _alike(word, name):
            wrong = _distance(word, name, most)
            if wrong is not None:
                scored.append((wrong, word in _gone(), word))
    scored.sort()
    if not scored or (len(scored) > 1 and scored[0][:2] == scored[1][:2]):
        return None
    return scored[0][2]


def _alike(word: str, name: str) -> bool:
    """Say whether two names differ in letters, not only in their numbers."""
    return re.sub(r"\d", "", word) != re.sub(r"\d", "", name)


def _distance(one: str, two: str, most: int) -> int | None:
    """Count wrong, missing, further and swapped letters; None for more than `most`."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, start=1):
        older, before, row = before, row, [i]
        for j, other in enumerate(two, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            swapped = i > 1 and j > 1 and letter == two[j - 2] and other == one[i - 2]
            row.append(min(cost, older[j - 2] + 1) if swapped else cost)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


def _place(reading: ConfigReading, name: str, quote: Quote) -> Quote:
    """Quote the key itself where it stands in the line of its value or one above."""
    rows = reading.text.split("\n")
    pattern = re.compile(rf"(?<!\w){re.escape(name).replace('_', '[-_]')}(?![\w-])", re.IGNORECASE)
    for line in range(quote.line, max(quote.line - 30, 0), -1):
        hits = list(pattern.finditer(rows[line - 1])) if line <= len(rows) else []
        if hits:
            lines = Lines(quote.artifact, [(line, rows[line - 1])])
            return lines.quote(0, hits[0].start(), hits[0].end())
    return quote
