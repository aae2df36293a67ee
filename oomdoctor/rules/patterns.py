"""Patterns of rules: compiled once, searched with a time limit, hits told by line.

Most patterns hit nothing. A pattern with a hint (oomdoctor.rules.hints, kept in the bundle) is
not even compiled where none of the literals occurs that it cannot hit without; one that is nothing
but literals never is; and one whose search is short for certain is left to the standard library,
which compiles faster but knows no time limit. All others, users' own among them, are searched by
the package `regex` under a time limit. See docs/decisions/0002-patterns.md.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import regex

Needs: TypeAlias = "tuple[tuple[str | Needs, ...], ...]"
"""All of these, and of each any: a literal, or again all of some."""

TIMEOUT_S = 0.25
MAX_HITS = 3
# About a second if it really came to that; the bound is generous, and real texts stay far below.
MOST_STEPS = 100_000_000


class Hits(NamedTuple):
    """Line numbers (0-based) of the first hits; `timed_out` where the search was stopped."""

    lines: tuple[int, ...] = ()
    timed_out: bool = False


class Hint(NamedTuple):
    """What was found out about a pattern before shipping.

    A match contains what it `needs`, is one of those literals where `exact`, lies within one line
    where `in_line`, and begins with one of `heads` where there are any. An attempt takes at most
    factor * (longest line) ** by_line * (whole text) ** by_text steps, which is `steps`; a factor
    of 0: no bound. With `fold`, texts are compared as `folded` spells them.
    """

    fold: bool
    exact: bool
    in_line: bool
    steps: Sequence[int]
    heads: Sequence[str]
    needs: Needs


_HINTS: dict[str, Sequence[Any]] = {}

_STOPPED: set[str] = set()


def was_any_stopped() -> bool:
    """Say whether any search ran out of time so far; mostly none did, and none need be named."""
    return bool(_STOPPED)


def learn(hints: Mapping[str, Sequence[Any]]) -> None:
    """Take hints over, as JSON gives them; a hint depends on nothing but its pattern."""
    _HINTS.update(hints)


@cache
def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a rule's pattern (MULTILINE); a malformed one raises `regex.error`."""
    import regex

    return regex.compile(pattern, regex.MULTILINE)


def fault_of(pattern: str) -> tuple[str, int] | None:
    """Say what is wrong with a pattern and at which offset, or None when it compiles."""
    import regex

    try:
        compiled(pattern)
    except regex.error as error:
        return str(error).partition(" at position ")[0], getattr(error, "pos", None) or 0
    except (OverflowError, RecursionError) as error:
        return str(error), 0
    return None


@lru_cache(maxsize=4096)
def search(pattern: str, text: str, *, timeout_s: float = TIMEOUT_S) -> Hits:
    """Find the lines of `text` where `pattern` hits, at most MAX_HITS of them."""
    given = _HINTS.get(pattern)
    lines = None if given is None else _lines_by_hint(pattern, Hint(*given), text)
    return _searched(pattern, text, timeout_s) if lines is None else Hits(lines)


def _lines_by_hint(pattern: str, hint: Hint, text: str) -> tuple[int, ...] | None:
    """Return the lines of the first hits, or None where only a search with a limit can tell."""
    if not may_hit(hint.needs, folded(text) if hint.fold else text):
        return ()
    if hint.exact:
        found = _lines_that_may(hint.needs, text.lower() if hint.fold else text)
        if found:  # else it is spelled with a letter that only a search takes for the same
            return tuple(found[:MAX_HITS])
    pieces = dict(enumerate(text.split("\n"))) if hint.in_line else {0: text}
    spelled = {at: folded(piece) if hint.fold else piece for at, piece in pieces.items()}
    promising = {at: pieces[at] for at, piece in spelled.items() if may_hit(hint.needs, piece)}
    if not all(_is_short(hint, piece, spelled[at]) for at, piece in promising.items()):
        return None
    hits = (
        at + piece.count("\n", 0, found.start())
        for at, piece in promising.items()
        for found in re.compile(pattern, re.MULTILINE).finditer(piece)
    )
    return _first_of(hits)


def _first_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the first MAX_HITS different numbers."""
    first: list[int] = []
    for number in numbers:
        if number not in first:
            first.append(number)
        if len(first) == MAX_HITS:
            break
    return tuple(first)


def may_hit(needs: Needs, text: str) -> bool:
    """Say whether a text contains all that a match needs."""
    return all(
        any(one in text if isinstance(one, str) else may_hit(one, text) for one in any_of)
        for any_of in needs
    )


def _is_short(hint: Hint, text: str, spelled: str) -> bool:
    """Say whether a search is bound to be short: attempts times the steps of each."""
    factor, by_line, by_text = hint.steps
    starts = sum(map(spelled.count, hint.heads)) if hint.heads else len(text) + 1
    longest = max(map(len, text.split("\n"))) if by_line else 1
    steps = starts * factor * (longest + 1) ** by_line * (len(text) + 1) ** by_text
    return factor > 0 and steps <= MOST_STEPS


def _lines_that_may(needs: Needs, text: str) -> list[int]:
    return [at for at, line in enumerate(text.split("\n")) if may_hit(needs, line)]


@lru_cache(maxsize=1024)
def folded(text: str) -> str:
    """Spell a text without case, such that what a pattern takes for equal becomes equal."""
    return text.casefold().replace("\u0307", "").replace("\u0131", "i")


def _searched(pattern: str, text: str, timeout_s: float) -> Hits:
    """Search with the package `regex`, at most `timeout_s`."""
    lines: list[int] = []
    try:
        for found in compiled(pattern).finditer(text, timeout=timeout_s):
            line = text.count("\n", 0, found.start())
            if line not in lines:
                lines.append(line)
            if len(lines) == MAX_HITS:
                break
    except TimeoutError:
        _STOPPED.add(pattern)
        return Hits(tuple(lines), timed_out=not lines)
    return Hits(tuple(lines))
