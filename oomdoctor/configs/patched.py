"""What a patch changes: the facts of its settings, read as those of a config in that dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import change, dialects
from oomdoctor.configs.mapping import converter
from oomdoctor.model.core import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping

# dialects whose settings are read by the table of another one
_AS = {"python": "hf_trainer", "unsloth": "trl", "cli": "hf_trainer"}


def facts_of_settings(dialect: str, settings: Mapping[str, object]) -> tuple[Fact, ...]:
    """Return the facts that settings of a patch state; those that take a key out state nothing."""
    table = dialects.named(_AS.get(dialect, dialect))
    found: dict[str, Fact] = {}
    for key, value in settings.items():
        if not change.sets(value) or not isinstance(value, (bool, int, float, str)):
            continue
        convert = converter(tuple(key.split(".")), table)
        for claim in () if convert is None else convert(value):
            fact = Fact(key=claim.key, value=claim.value, source="the fix")
            found.setdefault(claim.key, fact)
    return tuple(found.values())
