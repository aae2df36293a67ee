"""What a pattern cannot hit without, and how long a search may take: found once, before shipping.

    (?i)loading (shard|weights)[^/]*/4    "loading shard" or "loading weights", and "/4"
    cross_entropy|log_softmax             is these literals and nothing else

A pattern that only the package `regex` understands has no hint, and is searched as it stands
(docs/decisions/0002-patterns.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.rules.effort import Effort, NoBoundError, effort
from oomdoctor.rules.pattern_tree import (
    REPEATS,
    inside,
    language,
    may_cross,
    parsed,
    walk,
    words_of,
)
from oomdoctor.rules.patterns import Hint, folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.rules.pattern_tree import Argument, Items
    from oomdoctor.rules.patterns import Needs

SHORTEST_HEAD = 2
MOST_ALTERNATIVES = 24


def hints_of(patterns: Iterable[str]) -> dict[str, Hint]:
    """Return the hint of each pattern that has one."""
    hints = ((pattern, analysed(pattern)) for pattern in sorted(set(patterns)))
    return {pattern: hint for pattern, hint in hints if hint is not None}


def analysed(pattern: str) -> Hint | None:
    """Return what is known about a pattern, or None where that is nothing."""
    tree = parsed(pattern)
    if tree is None:
        return None
    items, fold = tree
    whole = language(items)
    exact = whole is not None and all(whole) and not any("\n" in text for text in whole)
    exact = exact and not (fold and "(?i:" in pattern)
    needs = (tuple(sorted(whole)),) if exact and whole is not None else _needs(items)
    steps = _steps(items)
    if not needs and steps.factor == 0:
        return None
    nodes = list(walk(items))
    heads = _heads(items) if steps.by_line or steps.by_text else ()
    looks = any(str(op) in ("ASSERT", "ASSERT_NOT") for op, _ in nodes)
    return Hint(
        fold=fold,
        exact=exact,
        in_line=not looks and not any(may_cross(str(op), argument) for op, argument in nodes),
        steps=tuple(steps),
        heads=tuple(sorted({folded(text) if fold else text for text in heads})),
        needs=_folded(needs) if fold else needs,
    )


def _steps(items: Items) -> Effort:
    try:
        return effort(items)
    except NoBoundError:
        return Effort(0)


def _folded(needs: Needs) -> Needs:
    return tuple(
        tuple(folded(one) if isinstance(one, str) else _folded(one) for one in any_of)
        for any_of in needs
    )


def _needs(items: Items) -> Needs:
    """Return what every match contains: of each group one text, or all that a part needs."""
    found: list[tuple[str | Needs, ...]] = []
    run = {""}
    for op, argument in items:
        words = words_of(str(op), argument)
        if words is not None and len(run) * len(words) <= MOST_ALTERNATIVES:
            run = {text + tail for text in run for tail in words}
            continue
        found.append(tuple(sorted(run)))
        run = {""} if words is None else words
        if words is None:
            found += _needs_inside(str(op), argument)
    found.append(tuple(sorted(run)))
    return tuple(dict.fromkeys(any_of for any_of in found if all(any_of)))


def _needs_inside(op: str, argument: Argument) -> Needs:
    if op.endswith("_REPEAT") and argument[0] == 0:
        return ()
    if op not in ("BRANCH", "SUBPATTERN", *REPEATS):
        return ()
    parts = [_needs(branch) for branch in inside(op, argument)]
    if len(parts) == 1:
        return parts[0]
    flat: list[str | Needs] = []
    for part in parts:
        flat += part[0] if len(part) == 1 else [part]
    return (tuple(flat),) if all(parts) else ()


def _heads(items: Items) -> set[str]:
    """Return texts with one of which every match begins; none where that is not known."""
    run = {""}
    for op, argument in items:
        if str(op) == "AT":
            continue
        words = words_of(str(op), argument)
        if words is None or len(run) * len(words) > MOST_ALTERNATIVES:
            if run == {""} and str(op) in ("BRANCH", "SUBPATTERN"):
                parts = [_heads(branch) for branch in inside(str(op), argument)]
                run = set[str]().union(*parts) if all(parts) else run
            break
        run = {text + tail for text in run for tail in words}
    short = min(map(len, run)) < SHORTEST_HEAD
    return set() if short or len(run) > MOST_ALTERNATIVES else run
