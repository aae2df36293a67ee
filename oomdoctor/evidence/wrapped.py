"""Engines' messages that a terminal or a log collector cut, searched in text without white space.

    RuntimeError: CUDA out of memory occurred when warming up sampler with 1024
    dummy requests. Please try lowering `max_num_seqs`

A pattern written for one line is turned into one for the squeezed text: its blanks fall out.
Readers of lines ask here only for what no line told.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.squeeze import WRAP_COLUMNS, Run, whole
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.model.core import Document, Quote

MOST_LINES = 3000
MOST_CHARS = 1 << 19
MOST_DOOR_CHARS = 1 << 15
MOST_DOOR_LINES = 400
LEAST_DOOR = 8
NEAR = 400
LONGEST_WORD = 80


class Found(NamedTuple):
    """A match in squeezed text, and where it stands."""

    run: Run
    match: re.Match[str]

    def crosses(self) -> bool:
        """Say whether the match goes over the end of a line."""
        start, end = self.match.span()
        return end > start and self.run.index_at(start) != self.run.index_at(end - 1)

    def quotes(self) -> tuple[Quote, ...]:
        """Quote the match, one quote for each line that it spans."""
        return self.run.quotes(*self.match.span())


_seen: list[tuple[Document, tuple[tuple[Run, str], ...]]] = []
"""The runs of the document asked for last, each with its text in lower case."""


def _runs(document: Document) -> tuple[tuple[Run, str], ...]:
    if not (_seen and _seen[0][0] is document):
        haystack = haystack_of(document)
        short = len(document.lines) <= MOST_LINES and len(haystack.text) <= MOST_CHARS
        runs = whole(document) if short else ()
        _seen[:] = [(document, tuple((run, run.text.lower()) for run in runs))]
    return _seen[0][1]


def matches(document: Document, literal: str, source: str) -> Iterator[Found]:
    """Yield where the pattern `source` fits across the ends of lines; `literal` is tested first."""
    bare = "".join(literal.split())
    for run, lowered in _runs(document):
        if bare not in lowered:
            continue
        for match in compiled(source).finditer(run.text):
            found = Found(run, match)
            apart = found.crosses() or _apart(found, lowered, bare)
            if apart and not run.cuts_number(*match.span()):
                yield found


def _apart(found: Found, lowered: str, bare: str) -> bool:
    """Say whether the literal is cut, or stands on another line than the figure it leads to."""
    start, run = found.match.start(), found.run
    at = lowered.rfind(bare, max(0, start - NEAR), found.match.end() + len(bare))
    at = at if at >= 0 else lowered.find(bare, start, found.match.end() + NEAR)
    if at < 0:
        return False
    return len({run.index_at(at), run.index_at(at + len(bare) - 1), run.index_at(start)}) > 1


def last(document: Document, literal: str, source: str) -> Found | None:
    """Return the last of `matches`."""
    found = None
    for one in matches(document, literal, source):
        found = one
    return found


def opens(document: Document, literals: Iterable[str]) -> bool:
    """Say whether the end of a line cuts one of `literals`; of short documents only."""
    if len(document.lines) > MOST_DOOR_LINES:
        return False
    if len(haystack_of(document).text) > MOST_DOOR_CHARS:
        return False
    for literal in literals:
        bare = "".join(literal.split())
        if len(bare) >= LEAST_DOOR and any(
            _crosses(run, lowered, bare) for run, lowered in _runs(document)
        ):
            return True
    return False


def _crosses(run: Run, lowered: str, bare: str) -> bool:
    at = lowered.find(bare)
    return at >= 0 and run.index_at(at) != run.index_at(at + len(bare) - 1)


def cut_number(document: Document, index: int, end: int) -> bool:
    """Say whether a figure that ends at `end` of line `index` may go on in the next line."""
    line = document.lines[index]
    if end < len(line.text.rstrip()) or not line.text[end - 1 : end].isdecimal():
        return False
    if len(line.raw.rstrip("\r\n")) < WRAP_COLUMNS or index + 1 >= len(document.lines):
        return False
    return document.lines[index + 1].text[:1] in _NUMBER


_NUMBER = frozenset("0123456789.,")


@cache
def compiled(source: str) -> re.Pattern[str]:
    """Compile the squeezed form of a pattern, case ignored."""
    return re.compile(squeezed(source), re.IGNORECASE)


def squeezed(source: str) -> str:
    r"""Return the pattern for text without white space.

    `\s` and blanks with their quantifiers fall out, a boundary of words becomes one of names, and
    runs of other characters than white space get an end, because nothing separates words there.
    """
    text = re.sub(r"(?<!\\)\[\^\\n\]", ".", source)
    text = re.sub(r"(?<!\\)\[[ \\s]+\](?:[*+?]|\{[\d,]*\})?", "", text)
    text = re.sub(r"(?:\\s| )(?:[*+?]\??|\{[\d,]*\})?", "", text)
    text = text.replace(r"\b", "(?<![_-])")
    return re.sub(r"\\S([*+])\??", _bounded, text)


def _bounded(found: re.Match[str]) -> str:
    least = 0 if found[1] == "*" else 1
    return rf"\S{{{least},{LONGEST_WORD}}}?"
