"""Facts out of what a person says in own words about a failure.

    during evaluation, about 300 samples in, it creeps up
        -> run.phase=eval, growth.monotone=true, run.late_step=true

The sense of a clause decides: a place in "training is fine" is not where it failed.
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.evidence import symptom_words as words
from oomdoctor.evidence.symptom_phrases import PLAIN
from oomdoctor.record import NamedTuple

MOST = 2000
_TURNS = r"[;!?\n]|\.(?=\s|$)|,|\b(?:but|however|while|whereas|then|although|though)\b"


class Clause(NamedTuple):
    """A part of a sentence, and whether it tells of a failure (True), of success, or of neither."""

    text: str
    failed: bool | None


def read(text: str) -> tuple[str, ...]:
    """Return the facts, as KEY=VALUE, that a few sentences state; each key once."""
    low = " ".join(text[:MOST].lower().replace("\u2019", "'").split())
    clauses = clauses_of(low)
    found: dict[str, str] = {}
    for item in (*_places(clauses), *_plain(clauses), *_growth(clauses), *_moment(clauses)):
        found.setdefault(item.partition("=")[0], item)
    if any(key.startswith("host.") for key in found):
        for key in ("gpu.foreign_share", "balance.foreign_low_share"):
            found.pop(key, None)
    return tuple(found.values())


def clauses_of(low: str) -> list[Clause]:
    """Split lower-case text where its sense may turn, and say of each part how it ended."""
    parts: list[str] = []
    for part in _compiled(_TURNS).split(low):
        halves = _compiled(r"\band\b").split(part)
        senses = {_sense(half) for half in halves} - {None}
        parts += halves if len(senses) > 1 else [part]
    return [Clause(part.strip(), _sense(part)) for part in parts if part.strip()]


def _sense(text: str) -> bool | None:
    if _has(words.BAD, text) or _rises(text):
        return True
    return False if _has(words.GOOD, text) or _has(words.FLAT, text) else None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _has(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


def _places(clauses: list[Clause]) -> list[str]:
    """Name the place of the clause that tells of the failure, else of one that tells of nothing."""
    for wanted in (True, None):
        for clause in clauses:
            if clause.failed is wanted:
                place = _place_of(clause.text) or (wanted and _subject(clause, clauses))
                if place:
                    return _place_facts(place, clause)
    return []


def _place_of(text: str) -> str | None:
    return next((place for place, pattern in words.PLACES if _has(pattern, text)), None)


def _subject(clause: Clause, clauses: list[Clause]) -> str | None:
    """Return the place of the clause before, where a clause goes on with its verb alone.

    "save_model works on one GPU, fails on eight": it is save_model that fails.
    """
    at = clauses.index(clause)
    if at == 0 or not re.match(rf"(?:it |but )?{words.BAD}", clause.text):
        return None
    return _place_of(clauses[at - 1].text)


def _rises(text: str) -> bool:
    return _has(words.GROWS, text) and not _has(words.FLAT, text)


def _place_facts(place: str, clause: Clause) -> list[str]:
    if place == "resume":
        steps = _has(r"\bforward|\bfirst (?:step|batch|iteration)|\btraining step", clause.text)
        return ["resume.on=true", *(["run.phase=forward"] if steps else ["run.phase=resume"])]
    return [f"run.phase={place}"]


def _plain(clauses: list[Clause]) -> list[str]:
    """Return the facts of plain phrases; a clause that denies what it names tells nothing."""
    whole = "; ".join(clause.text for clause in clauses)
    return [
        item
        for pattern, items in PLAIN
        for hit in [_compiled(pattern).search(whole)]
        if hit is not None and not _denied(whole[: hit.start()])
        for item in items
    ]


def _denied(before: str) -> bool:
    return (
        re.search(r"\b(?:not|no|never|without|isn't|wasn't) (?:a |an |the |any )?$", before)
        is not None
    )


def _growth(clauses: list[Clause]) -> list[str]:
    for clause in clauses:
        if _rises(clause.text):
            kind = "host" if _has(words.HOST, clause.text) else "device"
            return ["growth.monotone=true", "growth.points=3", f"growth.quantity={kind}"]
    if any(_has(words.FLAT, clause.text) for clause in clauses):
        return ["growth.monotone=false", "growth.points=3", "growth.quantity=device"]
    return []


def _moment(clauses: list[Clause]) -> list[str]:
    """Tell early from late by the clauses that do not speak of what went well."""
    told = [clause.text for clause in clauses if clause.failed is not False]
    found = []
    if any(_has(words.BOUNDARY, text) for text in told):
        found.append("run.epoch_boundary=true")
    if any(_has(words.LATE, text) for text in told):
        return [*found, "run.late_step=true", "run.first_step=false"]
    if any(_has(words.EARLY, text) for text in told):
        return [*found, "run.first_step=true", "run.late_step=false"]
    return found
