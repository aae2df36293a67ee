"""Literal search over a document's lines: cheap tests first, patterns only where they can hit."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.core import Document


MOST_LINES = 600
LAST_LINES = 200
"""Of more lines that say the same kind of thing the first and the last ones are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Haystack:
    """A document with its lines in lower case as one text, and where each line starts in it.

    `shapes` are the lines that differ in more than their numbers, which are `0` there: of a log
    that says the same at each step it is a hundredth, and most literals occur nowhere.
    """

    document: Document
    text: str
    shapes: str
    starts: tuple[int, ...]

    def has(self, literal: str) -> bool:
        """Say whether the lower-case `literal` occurs anywhere."""
        return literal in (self.shapes if _DIGITS.isdisjoint(literal) else self.text)

    def lines_with(self, literals: Iterable[str]) -> list[int]:
        """Return the indexes of the lines that hold one of the lower-case `literals`, in order."""
        hits: set[int] = set()
        for literal in filter(self.has, literals):
            at = self.text.find(literal)
            while at >= 0:
                index = bisect_right(self.starts, at) - 1
                hits.add(index)
                following = index + 1
                if following >= len(self.starts):
                    break
                at = self.text.find(literal, self.starts[following])
        return sorted(hits)

    def telling(self, literals: Iterable[str]) -> list[int]:
        """Return `lines_with`; of thousands of lines the first and the last ones."""
        found = self.lines_with(literals)
        if len(found) <= MOST_LINES:
            return found
        return [*found[: MOST_LINES - LAST_LINES], *found[-LAST_LINES:]]

    def before(self, index: int | None, literals: Iterable[str]) -> list[int]:
        """Return `lines_with`; of thousands those before line `index`, and the first and last."""
        found = self.lines_with(literals)
        if len(found) <= MOST_LINES:
            return found
        end = len(found) if index is None else bisect_right(found, index)
        start = max(0, end - MOST_LINES)
        return sorted({*found[:LAST_LINES], *found[start:end], *found[-LAST_LINES:]})

    def lowered(self, index: int) -> str:
        """Return line `index` in lower case."""
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[index] : end]


_DIGITS = frozenset("0123456789")
_ZEROS = str.maketrans("123456789", "000000000")
_newest: list[Haystack] = []
"""The one made last: the readers of a document ask for the same one after another."""


def haystack_of(document: Document) -> Haystack:
    """Lower the document once, so that every literal is one scan of one text."""
    if not (_newest and _newest[0].document is document):
        _newest[:] = [_made_of(document)]
    return _newest[0]


def _made_of(document: Document) -> Haystack:
    lowered = [line.text.lower() for line in document.lines]
    lengths = (len(line) + 1 for line in lowered[:-1])
    starts = tuple(accumulate(lengths, initial=0)) if lowered else ()
    text = "\n".join(lowered)
    return Haystack(document=document, text=text, shapes=_shapes(text), starts=starts)


def _shapes(text: str) -> str:
    """Return the lines of `text` once each, with every number as a single zero."""
    zeros = text.translate(_ZEROS)
    while "00" in zeros:
        zeros = zeros.replace("0000", "0").replace("00", "0")
    return "\n".join(dict.fromkeys(zeros.split("\n")))
