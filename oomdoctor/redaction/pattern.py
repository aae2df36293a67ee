"""One shape of text to take out: its kind, a regular expression, literals that have to occur.

The group `it` of the expression is what gets replaced. All expressions are linear: every repeat
is bounded or ends at a character that it cannot contain.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Pattern(NamedTuple):
    """A shape of text; `gates` are lower-case literals of which one occurs wherever it matches.

    `spreads` is False where the place alone tells what it is, and the same word elsewhere may be
    an ordinary one. `accept` has the last word on a match.
    """

    kind: str
    regex: str
    gates: tuple[str, ...] = ()
    spreads: bool = True
    accept: Callable[[re.Match[str]], bool] | None = None


@lru_cache(maxsize=512)
def compiled(regex: str) -> re.Pattern[str]:
    """Compile an expression when it is first needed; `^` and `$` match at lines."""
    return re.compile(regex, re.MULTILINE)


NAME = r"(?:(?<![\w\\.-])|(?<=\\[nrt]))(?P<it>[^\W\d_][\w.-]{0,63}(?<![.-]))"
HOSTNAME = r"[A-Za-z](?:[\w-]{0,62}\w)?(?:\.\w(?:[\w-]{0,62}\w)?){0,8}"
QUOTES = r"[\"'\\]{0,3}"
IS = rf"{QUOTES}[ \t]{{0,60}}[:=][ \t]{{0,20}}{QUOTES}"
"""What stands between a key and its value in shells, YAML, JSON and escaped JSON."""
