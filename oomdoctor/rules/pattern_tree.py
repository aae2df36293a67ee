"""The parse tree of a pattern, as the standard library's `re` reads it, and what it tells.

`re` has no public parser; the private one has kept its nodes for many versions, and whatever is
not understood here counts as unknown.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Argument: TypeAlias = Any
"""What stands in a node of a parse tree."""
Items: TypeAlias = "Sequence[tuple[object, Argument]]"
"""A sequence of nodes: an operation and what stands in it."""

MOST_WORDS = 64
ONE_WIDE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
# `{` that is no repeat count is a literal for `re`, and fuzzy matching for `regex`
_OTHER_BRACE = re.compile(r"(?<!\\)\{(?!\d*,?\d*\})")


def parsed(pattern: str) -> tuple[Items, bool] | None:
    """Return a pattern's nodes and whether any of it ignores case.

    None where `re` does not read it, or not as the package `regex` does.
    """
    if _OTHER_BRACE.search(pattern):
        return None
    parser = getattr(re, "_parser", None) or __import__("sre_parse")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = parser.parse(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError, Warning):
        return None
    groups = [argument for op, argument in walk(list(tree)) if str(op) == "SUBPATTERN"]
    local = {flag for group in groups for flag in group[1:3]} - {0}
    if local - {re.IGNORECASE}:
        return None
    return list(tree), bool(local) or bool(tree.state.flags & re.IGNORECASE)


def walk(items: Items) -> Iterator[tuple[object, Argument]]:
    """Yield all nodes."""
    for op, argument in items:
        yield op, argument
        for branch in inside(str(op), argument):
            yield from walk(branch)


def inside(op: str, argument: Argument) -> list[Items]:
    """Return the sequences that a node holds."""
    if op == "BRANCH":
        return [list(branch) for branch in argument[1]]
    if op == "SUBPATTERN":
        return [list(argument[3])]
    if op in (*REPEATS, "POSSESSIVE_REPEAT"):
        return [list(argument[2])]
    if op in ("ASSERT", "ASSERT_NOT"):
        return [list(argument[1])]
    return [list(argument)] if op == "ATOMIC_GROUP" else []


def language(items: Items) -> set[str] | None:
    """Return all texts that a sequence matches, or None where they are too many."""
    texts = {""}
    for op, argument in items:
        more = words_of(str(op), argument)
        if more is None or len(texts) * len(more) > MOST_WORDS:
            return None
        texts = {text + tail for text in texts for tail in more}
    return texts


def words_of(op: str, argument: Argument) -> set[str] | None:
    """Return all texts that a node matches, or None where they are too many."""
    if op == "LITERAL":
        return {chr(argument)}
    if op == "IN":
        plain = all(str(kind) == "LITERAL" for kind, _ in argument)
        return {chr(code) for _, code in argument} if plain else None
    if op in ("BRANCH", "SUBPATTERN"):
        languages = [language(branch) for branch in inside(op, argument)]
        known = [one for one in languages if one is not None]
        words = set[str]().union(*known)
        return words if len(known) == len(languages) and len(words) <= MOST_WORDS else None
    if op in REPEATS and tuple(argument[:2]) == (0, 1):
        once = language(list(argument[2]))
        return None if once is None else once | {""}
    return None


def may_cross(op: str, argument: Argument) -> bool:
    """Say whether a node may match a line break, or look beyond one."""
    if op == "LITERAL":
        return bool(argument == ord("\n"))
    if op == "NOT_LITERAL":
        return bool(argument != ord("\n"))
    if op == "IN":
        return _holds_line_break([(str(kind), value) for kind, value in argument])
    return op == "AT" and "STRING" in str(argument)


def _holds_line_break(parts: list[tuple[str, Argument]]) -> bool:
    named = {"CATEGORY_SPACE", "CATEGORY_NOT_DIGIT", "CATEGORY_NOT_WORD"}
    code = ord("\n")
    held = any(
        (kind == "LITERAL" and value == code)
        or (kind == "RANGE" and value[0] <= code <= value[1])
        or (kind == "CATEGORY" and str(value) in named)
        for kind, value in parts
    )
    return held is not any(kind == "NEGATE" for kind, _ in parts)
