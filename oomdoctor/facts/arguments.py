"""The trainer's arguments out of all settings, so that a rule never takes a variable for one.

TrainingArguments(warmup_ratio=0.03)     trainingarguments.warmup_ratio = 0.03   warmup_ratio = 0.03
warmup_ratio = 0.1                       warmup_ratio = 0.1                      (left out)
In a file without such a call every setting is kept as it stands: keys of a config, flags of a
command, variables that some parser of its own reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

KEY = "job.arguments"
SETTINGS = "job.settings"
TRAINERS = frozenset(
    (
        "sft",
        "dpo",
        "grpo",
        "kto",
        "orpo",
        "cpo",
        "rloo",
        "reward",
        "prm",
        "ppo",
        "gkd",
        "bco",
        "xpo",
        "nashmd",
        "onlinedpo",
    )
)


def arguments(book: FactBook) -> tuple[Fact, ...]:
    """Return the fact of all arguments, one per line with its quote; none without settings."""
    listed = book.get(SETTINGS)
    if listed is None or book.get(KEY) is not None:
        return ()
    lines = str(listed.value).split("\n")
    quotes = listed.quotes if len(listed.quotes) == len(lines) else ()
    places = [quote.artifact for quote in quotes] or [""] * len(lines)
    scripts = {place for line, place in zip(lines, places, strict=True) if _argument(line)}
    kept = [
        (_argument(line) or line, number)
        for number, (line, place) in enumerate(zip(lines, places, strict=True))
        if _argument(line) or place not in scripts
    ]
    if not kept:
        return ()
    value = "\n".join(line for line, _ in kept)
    told = tuple(quotes[number] for _, number in kept) if quotes else ()
    return (Fact(key=KEY, value=value, origin=Origin.DERIVED, quotes=told, source=SETTINGS),)


def _argument(line: str) -> str | None:
    """Return a line without the constructor that it belongs to; None where it belongs to none."""
    head, dot, rest = line.partition(" = ")[0].partition(".")
    if not dot or "." in rest:
        return None
    made = head.endswith("trainingarguments") or (
        head.endswith("config") and head.removesuffix("config") in TRAINERS
    )
    return line[len(head) + 1 :] if made else None
