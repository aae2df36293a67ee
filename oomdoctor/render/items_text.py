"""Items of a page in a terminal: stacked bars, folded items (all open), remarks, quotes, code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.bars import Share, bar, fill_of
from oomdoctor.render.escape import cells, shorten
from oomdoctor.render.layout import Line, Span, flow, line
from oomdoctor.render.parts.fixes import DIFF_STYLES
from oomdoctor.render.parts.pieces import DEEP, INDENT, paragraph, safe
from oomdoctor.render.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.page import Code, Fold, Point, Quoted, Stack
    from oomdoctor.render.theme import Theme

STYLES = 4
WIDEST_BAR = 100
LEAST_QUOTE = 20


def stack_lines(stack: Stack, theme: Theme) -> list[Line]:
    """Return a stacked bar with a legend below it."""
    fills = [
        fill_of(one.kind or one.name, at, unicode=theme.unicode)
        for at, one in enumerate(stack.parts)
    ]
    styles = [
        "free" if one.kind == "free" else f"bar{at % STYLES}" for at, one in enumerate(stack.parts)
    ]
    parts = list(zip(stack.parts, fills, styles, strict=True))
    shown = [Share(one.value, fill, style) for one, fill, style in parts if one.value > 0]
    width = min(theme.width - len(INDENT), WIDEST_BAR)
    lines = paragraph(stack.caption, theme, first=INDENT, style="dim")
    lines += [(Span(INDENT), *bar(shown, whole=stack.whole, width=width))] if shown else []
    names = max((cells(one.name) for one in stack.parts), default=0)
    sizes = max((cells(one.amount) for one in stack.parts), default=0)
    for one, fill, style in parts:
        share = percent(min(one.value / stack.whole, 1.0)) if stack.whole else ""
        name = f"{safe(one.name, theme):<{names}}"
        text = f"{name}  {safe(one.amount, theme):>{sizes}} {share:>6}"
        note = f"({safe(one.note, theme)})" if one.note else ""
        head = line(INDENT, Span(fill, style), Span(f" {text}"))
        hanging = " " * (len(INDENT) + 2 + names + 2)
        if cells(note) + sum(cells(span.text) for span in head) < theme.width:
            lines.append((*head, Span(f"  {note}".rstrip(), "dim")))
        else:
            lines += [head, *flow([Span(note, "dim")], width=theme.width, first=hanging)]
    return lines


def fold_lines(fold: Fold, theme: Theme) -> list[Line]:
    """Return an item with all that it holds."""
    spans = [Span(f"{safe(fold.badge, theme)} ", fold.role)] if fold.badge else []
    spans.append(Span(safe(fold.title, theme), "strong"))
    if fold.tag:
        spans.append(Span(f" [{safe(fold.tag, theme)}]", "dim"))
    lines = flow(spans, width=theme.width, first=f"{INDENT}{theme.glyph('dot')} ", rest=DEEP)
    for sentence in fold.sentences:
        lines += paragraph(sentence, theme)
    lines += point_lines(fold.points, theme, first=DEEP)
    lines += quote_lines(fold.quotes, theme)
    for code in fold.codes:
        lines += code_lines(code, theme)
    lines += point_lines(fold.contrary, theme, first=DEEP)
    return lines + quote_lines(fold.contrary_quotes, theme)


def point_lines(points: Sequence[Point], theme: Theme, *, first: str = INDENT) -> list[Line]:
    """Return remarks behind their signs."""
    return [
        one
        for point in points
        for one in paragraph(point.text, theme, first=f"{first}{safe(point.sign, theme)} ")
    ]


def quote_lines(quotes: Sequence[Quoted], theme: Theme) -> list[Line]:
    """Return lines of inputs, each on one line, long ones cut in the middle."""
    mark = theme.glyph("cut")
    start = f"{DEEP}{theme.glyph('quote')} "
    room = theme.width - cells(start)
    lines = []
    for one in quotes:
        where = shorten(safe(one.place, theme), max(room // 2, LEAST_QUOTE), mark=mark)
        left = max(room - cells(where) - 2, LEAST_QUOTE)
        text = shorten(safe(one.text, theme), left, mark=mark)
        lines.append(line(Span(start, "dim"), Span(f"{where}:", "place"), Span(f" {text}")))
    return lines


def code_lines(code: Code, theme: Theme) -> list[Line]:
    """Return text to copy word for word; never wrapped."""
    title = [line(DEEP, Span(f"{safe(code.title, theme)}:", "place"))] if code.title else []
    diff = code.language == "diff"
    return title + [
        line(DEEP, Span(safe(row, theme), DIFF_STYLES.get(row[:1], "") if diff else "command"))
        for row in code.text.split("\n")
    ]
