"""Which facts a setting would state whose value is an expression: open, so that no default holds.

bf16=is_bfloat16_supported()     train.amp
r=args.rank                      lora.rank
--lr_scheduler_type $SCHEDULE    train.scheduler
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs.listing import joined
from oomdoctor.model.core import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.configs.claims import Convert
    from oomdoctor.configs.setting import Plain, Setting

KEY = "job.open"
SAMPLES: tuple[Plain, ...] = (True, False, 1, 0.5, "1", "steps", "adamw_torch", "cosine", "bf16")


@cache
def _expression() -> re.Pattern[str]:
    return re.compile(
        r"<.*>$|\$[\w({]|\{\{|.*\w\(|not \w|.+ if .+ else |[\w.]+ (?:or|and) \w", re.DOTALL
    )


def is_open(value: Plain) -> bool:
    """Say whether a value is an expression of which only its run knows what it is."""
    return isinstance(value, str) and _expression().match(value) is not None


def stated_by(convert: Convert) -> frozenset[str]:
    """Return the keys of facts that a setting states with one value or another."""
    return frozenset(claim.key for sample in SAMPLES for claim in convert(sample))


def fact(rows: Iterable[tuple[Setting, Convert | None]], held: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the fact of all that is open, one key per line; none where nothing is."""
    told = {one.key for one in held}
    found: list[Fact] = []
    for row, convert in rows:
        if is_open(row.value) and convert is not None:
            keys = sorted(stated_by(convert) - told)
            told.update(keys)
            found += (Fact(key=KEY, value=key, quotes=(row.quote,)) for key in keys)
    return joined(found)
