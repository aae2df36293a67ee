"""Every setting in force as one text fact: what rules about the presence of a key search.

train:                       train.lr_scheduler_type = constant
  lr_scheduler_type: constant
TrainingArguments(fp16=True) trainingarguments.fp16 = true
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.configs.setting import Plain, Setting

KEY = "job.settings"
LONGEST = 400
MOST = 5000


def listing(rows: Iterable[Setting]) -> tuple[Fact, ...]:
    """Return the fact of all settings, `dotted.key = value` per line with one quote per line."""
    held = list(rows)[:MOST]
    if not held:
        return ()
    lines = [f"{row.key} = {written(row.value)}" for row in held]
    return (Fact(key=KEY, value="\n".join(lines), quotes=tuple(row.quote for row in held)),)


def written(value: Plain) -> str:
    """Write a value on one line: `true`, `null`, a number, a text, list parts joined by commas."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(written(part) for part in value)[:LONGEST]
    return " ".join(str(value).split())[:LONGEST]


def joined(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Join several listings of one key into one."""
    if len(facts) < 2:
        return tuple(facts)
    text = "\n".join(str(fact.value) for fact in facts)
    quotes = tuple(quote for fact in facts for quote in fact.quotes)
    return (Fact(key=facts[0].key, value=text, quotes=quotes),)
