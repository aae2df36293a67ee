"""Patterns of rules: compiled once, searched with a time limit, hits told by line."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import regex

TIMEOUT_S = 0.25
MAX_HITS = 3


class Hits(NamedTuple):
    """Line numbers (0-based) of the first hits; `timed_out` where the search was stopped."""

    lines: tuple[int, ...] = ()
    timed_out: bool = False


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
    lines: list[int] = []
    try:
        for found in compiled(pattern).finditer(text, timeout=timeout_s):
            line = text.count("\n", 0, found.start())
            if line not in lines:
                lines.append(line)
            if len(lines) == MAX_HITS:
                break
    except TimeoutError:
        return Hits(tuple(lines), timed_out=not lines)
    return Hits(tuple(lines))
