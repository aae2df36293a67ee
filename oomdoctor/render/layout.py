"""Lay styled text out in lines of a given width, without any terminal library."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.record import NamedTuple
from oomdoctor.render.escape import cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Span(NamedTuple):
    """A run of text in one style; the style's name is a key of `theme.STYLES` or empty."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]
BLANK: Line = ()


def line(*parts: Span | str) -> Line:
    """Make one line of spans and plain strings; it is never wrapped (commands, diffs, bars)."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def flow(
    parts: Iterable[Span | str], *, width: int, first: str = "", rest: str | None = None
) -> list[Line]:
    """Break `parts` at blanks into lines of at most `width` columns.

    `first` stands before the first line, `rest` before the others (by default as many blanks). A
    word that is wider than a line is broken where the line ends.
    """
    hanging = " " * cells(first) if rest is None else rest
    lines: list[Line] = []
    current: list[Span] = []
    used = 0
    room = width - cells(first)
    for word in _words(line(*parts)):
        size = sum(cells(span.text) for span in word)
        if current and used + 1 + size > room:
            lines.append(tuple(current))
            current, used, room = [], 0, width - cells(hanging)
        if current:
            current.append(Span(" ", _joint(current[-1], word[0])))
            used += 1
        for piece in _pieces(word, room=room, used=used):
            if piece is None:
                lines.append(tuple(current))
                current, used, room = [], 0, width - cells(hanging)
            else:
                current.append(piece)
                used += cells(piece.text)
    lines.append(tuple(current))
    return [_prefixed(one, first if at == 0 else hanging) for at, one in enumerate(lines)]


def _prefixed(one: Line, prefix: str) -> Line:
    return (Span(prefix), *one) if prefix else one


def _joint(left: Span, right: Span) -> str:
    return left.style if left.style == right.style else ""


def _words(spans: Sequence[Span]) -> Iterable[list[Span]]:
    """Yield words as lists of spans: text that touches stays together across a change of style."""
    word: list[Span] = []
    for span in spans:
        for at, part in enumerate(span.text.split(" ")):
            if at and word:
                yield word
                word = []
            if part:
                word.append(Span(part, span.style))
    if word:
        yield word


def _pieces(word: Sequence[Span], *, room: int, used: int) -> Iterable[Span | None]:
    """Yield the word's spans, with None where a line has to end inside it."""
    left = max(room - used, 1)
    for span in word:
        text = span.text
        while cells(text) > left:
            at = _fitting(text, left)
            if at:
                yield Span(text[:at], span.style)
            yield None
            text = text[at:]
            left = max(room, 1)
        if text:
            yield Span(text, span.style)
            left -= cells(text)


def _fitting(text: str, room: int) -> int:
    used = 0
    for at, char in enumerate(text):
        used += cells(char)
        if used > room:
            return at if at or room < 1 else 1
    return len(text)


def plain(lines: Iterable[Line]) -> str:
    """Return the lines as text without styles and without blanks at their ends."""
    return "\n".join("".join(span.text for span in one).rstrip() for one in lines)
