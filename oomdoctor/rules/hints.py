"""What a pattern cannot hit without, and how long a search may take: found once, before shipping.

    (?i)loading (shard|weights)[^/]*/4    "loading shard" or "loading weights", and "/4"
    cross_entropy|log_softmax             is these literals and nothing else

`analysed` reads the parse tree of the standard library's `re`; a pattern that only the package
`regex` understands has no hint, and is searched as it stands (docs/decisions/0002-patterns.md).
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.rules.patterns import Hint, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.rules.patterns import Needs

Argument: TypeAlias = Any
"""What stands in a node of a parse tree of `re`, which has no public type."""

MOST_LITERALS = 64
# `{` that is no repeat count is a literal for `re`, and fuzzy matching for `regex`
_OTHER_BRACE = re.compile(r"(?<!\\)\{(?!\d*,?\d*\})")
_ONE_WIDE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")


class _NoBoundError(Exception):
    """The steps of a search have no bound that is worth telling."""


def hints_of(patterns: Iterable[str]) -> dict[str, Hint]:
    """Return the hint of each pattern that has one."""
    hints = ((pattern, analysed(pattern)) for pattern in sorted(set(patterns)))
    return {pattern: hint for pattern, hint in hints if hint is not None}


def analysed(pattern: str) -> Hint | None:
    """Return what is known about a pattern, or None where `re` reads it differently or not."""
    tree = _parsed(pattern)
    if tree is None:
        return None
    items = list(tree)
    fold = bool(tree.state.flags & re.IGNORECASE)
    whole = _language(items)
    exact = whole is not None and all(whole) and not any("\n" in text for text in whole)
    needs = (_any_of(whole),) if exact and whole is not None else _needs(items)
    try:
        degree, factor = _effort(items)
    except _NoBoundError:
        degree, factor = -1, 0
    if not needs and degree < 0:
        return None
    return Hint(
        fold=fold,
        exact=exact,
        in_line=not any(_may_cross(str(op), argument) for op, argument in _walk(items)),
        degree=degree,
        factor=factor,
        needs=_folded(needs) if fold else needs,
    )


def _any_of(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts))


def _folded(needs: Needs) -> Needs:
    return tuple(
        tuple(folded(one) if isinstance(one, str) else _folded(one) for one in any_of)
        for any_of in needs
    )


def _parsed(pattern: str) -> Argument:
    if _OTHER_BRACE.search(pattern):
        return None
    parser = getattr(re, "_parser", None) or __import__("sre_parse")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = parser.parse(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError, Warning):
        return None
    return None if _has_local_flags(list(tree)) else tree


def _has_local_flags(items: Sequence[Any]) -> bool:
    return any(
        str(op) == "SUBPATTERN" and (argument[1] or argument[2]) for op, argument in _walk(items)
    )


def _walk(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield all nodes of a parse tree."""
    for op, argument in items:
        yield op, argument
        for branch in _inside(str(op), argument):
            yield from _walk(branch)


def _inside(op: str, argument: Argument) -> list[list[Any]]:
    """Return the sequences that a node holds."""
    if op == "BRANCH":
        return [list(branch) for branch in argument[1]]
    if op == "SUBPATTERN":
        return [list(argument[3])]
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [list(argument[2])]
    if op in ("ASSERT", "ASSERT_NOT"):
        return [list(argument[1])]
    return [list(argument)] if op == "ATOMIC_GROUP" else []


def _language(items: Sequence[Any]) -> set[str] | None:
    """Return all texts that a sequence matches, or None where they are too many."""
    texts = {""}
    for op, argument in items:
        more = _words_of(str(op), argument)
        if more is None or len(texts) * len(more) > MOST_LITERALS:
            return None
        texts = {text + tail for text in texts for tail in more}
    return texts


def _words_of(op: str, argument: Argument) -> set[str] | None:
    """Return all texts that a node matches, or None where they are too many."""
    if op == "LITERAL":
        return {chr(argument)}
    if op == "IN":
        plain = all(str(kind) == "LITERAL" for kind, _ in argument)
        return {chr(code) for _, code in argument} if plain else None
    if op in ("BRANCH", "SUBPATTERN"):
        languages = [_language(branch) for branch in _inside(op, argument)]
        known = [language for language in languages if language is not None]
        words = set[str]().union(*known)
        return words if len(known) == len(languages) and len(words) <= MOST_LITERALS else None
    if op in ("MAX_REPEAT", "MIN_REPEAT") and tuple(argument[:2]) == (0, 1):
        once = _language(list(argument[2]))
        return None if once is None else once | {""}
    return None


def _needs(items: Sequence[Any]) -> Needs:
    """Return what every match contains: of each group one text, or all that a part needs."""
    found: list[tuple[str | Needs, ...]] = []
    run = {""}
    for op, argument in items:
        words = _words_of(str(op), argument)
        if words is not None and len(run) * len(words) <= MOST_LITERALS:
            run = {text + tail for text in run for tail in words}
            continue
        found.append(_any_of(run))
        run = {""} if words is None else words
        if words is None:
            found += _needs_inside(str(op), argument)
    found.append(_any_of(run))
    return tuple(dict.fromkeys(any_of for any_of in found if all(any_of)))


def _needs_inside(op: str, argument: Argument) -> Needs:
    if op.endswith("_REPEAT") and argument[0] == 0:
        return ()
    if op not in ("BRANCH", "SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT"):
        return ()
    parts = [_needs(branch) for branch in _inside(op, argument)]
    if len(parts) == 1:
        return parts[0]
    flat: list[str | Needs] = []
    for part in parts:
        flat += part[0] if len(part) == 1 else [part]
    return (tuple(flat),) if all(parts) else ()


def _may_cross(op: str, argument: Argument) -> bool:
    """Say whether a node may match or look at a line break."""
    if op == "LITERAL":
        return bool(argument == ord("\n"))
    if op == "NOT_LITERAL":
        return bool(argument != ord("\n"))
    if op == "IN":
        return _holds_line_break([(str(kind), value) for kind, value in argument])
    return op in ("ASSERT", "ASSERT_NOT") or (op == "AT" and "STRING" in str(argument))


def _holds_line_break(parts: list[tuple[str, Any]]) -> bool:
    named = {"CATEGORY_SPACE", "CATEGORY_NOT_DIGIT", "CATEGORY_NOT_WORD"}
    code = ord("\n")
    held = any(
        (kind == "LITERAL" and value == code)
        or (kind == "RANGE" and value[0] <= code <= value[1])
        or (kind == "CATEGORY" and str(value) in named)
        for kind, value in parts
    )
    return held is not any(kind == "NEGATE" for kind, _ in parts)


def _effort(items: Sequence[Any]) -> tuple[int, int]:
    """Return d and f such that a search of n characters takes at most about f * n ** (d + 1) steps.

    Repeats without an end count where they repeat one character; all else that could explode
    (a repeat in a repeat, a back reference) has no bound.
    """
    degree, factor = 0, 1
    for op, argument in items:
        more, times = _effort_of(str(op), argument)
        degree, factor = degree + more, factor * times
    return degree, factor


def _effort_of(op: str, argument: Argument) -> tuple[int, int]:
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        return _effort_of_repeat(*argument)
    if op in (*_ONE_WIDE, "AT"):
        return 0, 1
    if op not in ("BRANCH", "SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        raise _NoBoundError
    efforts = [_effort(branch) for branch in _inside(op, argument)]
    return max(degree for degree, _ in efforts), sum(factor for _, factor in efforts)


def _effort_of_repeat(low: int, high: int, inner: Argument) -> tuple[int, int]:
    parts = list(inner)
    single = len(parts) == 1 and str(parts[0][0]) in _ONE_WIDE
    if single:
        endless = high >= MOST_LITERALS * 4
        return (1, 1) if endless else (0, high - low + 1)
    if high > 1:
        raise _NoBoundError
    degree, factor = _effort(parts)
    return degree, factor + 1
