"""Pieces that several sections are made of: headings, quotes, paragraphs, lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.escape import cells, shorten, visible
from oomdoctor.render.layout import Line, Span, flow, line
from oomdoctor.render.words import distinct, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import Quote
    from oomdoctor.render.theme import Theme

INDENT = "  "
DEEP = "     "
LEAST_QUOTE = 20
MOST_LINES = 3
ROOM_TO_BREAK = 20


def safe(text: str, theme: Theme) -> str:
    """Return `text` as this page may print it."""
    return visible(text, ascii_only=not theme.unicode)


def heading(text: str) -> Line:
    """Return the title line of a section."""
    return line(Span(text, "heading"))


def paragraph(
    text: str, theme: Theme, *, first: str = DEEP, rest: str | None = None, style: str = ""
) -> list[Line]:
    """Wrap a text of any origin; its own lines stay lines."""
    hanging = " " * cells(first) if rest is None else rest
    lines: list[Line] = []
    for at, part in enumerate(text.split("\n")):
        spans = [Span(safe(part, theme), style)]
        start = first if at == 0 else hanging
        lines += flow(spans, width=theme.width, first=start, rest=hanging)
    return lines


def quoted(quotes: Sequence[Quote], theme: Theme, *, most: int | None = None) -> list[Line]:
    """Show quotes as `file:line: text`, each on one line, long ones cut in the middle."""
    listed = distinct(quotes)
    shown = listed if most is None else listed[:most]
    lines = [_quote(quote, theme) for quote in shown]
    if len(shown) < len(listed):
        more = f"and {len(listed) - len(shown)} more (--explain shows all)"
        lines.append(line(DEEP, Span(more, "dim")))
    return lines


def _quote(quote: Quote, theme: Theme) -> Line:
    mark = theme.glyph("cut")
    bar = f"{DEEP}{theme.glyph('quote')} "
    room = theme.width - cells(bar)
    where = shorten(safe(place(quote), theme), max(room // 2, LEAST_QUOTE), mark=mark)
    left = max(room - cells(where) - 2, LEAST_QUOTE)
    text = shorten(safe(quote.text.strip(), theme), left, mark=mark)
    return line(Span(bar, "dim"), Span(f"{where}:", "place"), Span(f" {text}"))


def whole_quote(quote: Quote, theme: Theme, *, first: str) -> list[Line]:
    """Show one quote over up to three lines; a longer one is cut in the middle."""
    bar = f"{first}{theme.glyph('quote')} "
    room = theme.width - cells(bar)
    where = shorten(safe(place(quote), theme), max(room // 2, LEAST_QUOTE), mark=theme.glyph("cut"))
    most = max(MOST_LINES * room - cells(where) - ROOM_TO_BREAK, LEAST_QUOTE)
    text = shorten(safe(quote.text.strip(), theme), most, mark=theme.glyph("cut"))
    spans = [Span(f"{where}:", "place"), Span(f" {text}")]
    return flow(spans, width=theme.width, first=bar, rest=bar)


def listed(label: str, names: Sequence[str], theme: Theme, *, first: str = DEEP) -> list[Line]:
    """Show `label: a, b, c`, or nothing where there are no names."""
    if not names:
        return []
    spans = [Span(f"{label}: ", "dim"), Span(safe(", ".join(names), theme))]
    return flow(spans, width=theme.width, first=first, rest=first + INDENT)
