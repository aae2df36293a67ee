"""Which rules may speak: those selected by the start of their code, without those ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.rules.shape import RuleSet


def selected(
    ruleset: RuleSet, *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> RuleSet:
    """Return the rules whose code starts like one of `select` (all, without it) and no `ignore`.

    A prefix that no code has is an error, because a misspelt one would silence rules unnoticed.
    """
    if not (select or ignore):
        return ruleset
    codes = [rule.code for rule in ruleset.rules]
    for prefix in (*select, *ignore):
        if not any(code.startswith(prefix) for code in codes):
            raise UsageError(
                f"no rule's code starts with {prefix!r}",
                hint="`oomdoctor rules list` shows all codes",
            )
    kept = tuple(
        rule
        for rule in ruleset.rules
        if (not select or rule.code.startswith(tuple(select)))
        and not rule.code.startswith(tuple(ignore))
    )
    return replace(ruleset, rules=kept)
