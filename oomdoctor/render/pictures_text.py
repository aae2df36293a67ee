"""Heat maps and curves in a terminal: coloured cells with signs, areas of block characters."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from oomdoctor.render.escape import cells, markdown
from oomdoctor.render.layout import Line, Span, line
from oomdoctor.render.parts.pieces import INDENT, paragraph, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.page import Curve, CurvePoint, HeatMap
    from oomdoctor.render.theme import Theme

GAP = "  "
STYLES = ("good", "aside", "bad")
SIGNS = ((" ", " "), ("~", "~"), ("✖", "x"))
"""What stands behind a cell, so that it can be told without colours: Unicode, ASCII."""
BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "  ..::##@"
HEIGHT = 6
WIDEST = 100
LEAST_NAME = 4
SHADES = ("bar0", "bar1", "bar2", "bar3")


def heat_lines(heat: HeatMap, theme: Theme) -> list[Line]:
    """Return a heat map as lines: each cell in its colour, with a sign behind it."""
    corner = safe(f"{heat.down} \\ {heat.across}", theme)
    head = max([cells(corner), *(cells(name) for name, _ in heat.rows)])
    texts = [[*heat.columns], *([one.text for one in row] for _, row in heat.rows)]
    widths = [max(cells(row[at]) for row in texts) + 1 for at in range(len(heat.columns))]
    shown = _columns(widths, room=theme.width - len(INDENT) - head)
    lines = paragraph(heat.caption, theme, first=INDENT, style="dim")
    names = "".join(f"{GAP}{heat.columns[at]:>{widths[at] - 1}} " for at in range(shown))
    lines.append(line(f"{INDENT}{corner:>{head}}", Span(names.rstrip(), "dim")))
    order = [word for word, _ in heat.words]
    for name, row in heat.rows:
        spans = [Span(f"{INDENT}{name:>{head}}", "dim")]
        for at, cell in enumerate(row[:shown]):
            level = order.index(cell.word) if cell.word in order else None
            sign = " " if level is None else SIGNS[level][0 if theme.unicode else 1]
            style = "" if level is None else STYLES[level]
            spans.append(Span(f"{GAP}{safe(cell.text, theme):>{widths[at] - 1}}{sign}", style))
        lines.append(tuple(spans))
    if shown < len(heat.columns):
        left = ", ".join(heat.columns[shown:])
        lines += paragraph(f"not shown for want of room: {left}", theme, first=INDENT, style="dim")
    legend = _legend(heat, unicode=theme.unicode)
    return lines + (paragraph(legend, theme, first=INDENT, style="dim") if legend else [])


def _columns(widths: Sequence[int], *, room: int) -> int:
    """Return how many columns there is room for."""
    used = 0
    for at, width in enumerate(widths):
        used += width + len(GAP)
        if used > room + 1:
            return at
    return len(widths)


def _legend(heat: HeatMap, *, unicode: bool) -> str:
    found = []
    for (_, meaning), (fancy, plain) in zip(heat.words, SIGNS, strict=False):
        sign = fancy if unicode else plain
        found.append(f"{sign} {meaning}" if sign.strip() else f"no sign: {meaning}")
    return ", ".join(found)


def heat_table(heat: HeatMap) -> str:
    """Return a heat map as a Markdown table whose cells carry their signs."""
    order = [word for word, _ in heat.words]
    corner = markdown(f"{heat.down} \\ {heat.across}")
    lines = [
        f"| {corner} | {' | '.join(map(markdown, heat.columns))} |",
        f"|---:|{'|'.join('---:' for _ in heat.columns)}|",
    ]
    for name, row in heat.rows:
        signs = [SIGNS[order.index(one.word)][0] if one.word in order else "" for one in row]
        texts = (
            markdown(f"{one.text} {sign}".strip()) for one, sign in zip(row, signs, strict=True)
        )
        lines.append(f"| {markdown(name)} | {' | '.join(texts)} |")
    legend = _legend(heat, unicode=True)
    return "\n".join(
        [markdown(heat.caption), "", *lines, *(["", markdown(legend)] if legend else [])]
    )


def curve_lines(curve: Curve, theme: Theme) -> list[Line]:
    """Return a curve as an area of blocks, its stretches in changing shades and named below."""
    if not curve.points:
        return []
    width = min(theme.width - len(INDENT) - cells(curve.top) - len(GAP), WIDEST)
    columns = _spread(curve.points, max(width, 10))
    highest = max([one.value for one in columns] + [level for _, level in curve.lines]) or 1.0
    lines = paragraph(curve.caption, theme, first=INDENT, style="dim")
    blocks = BLOCKS if theme.unicode else ASCII_BLOCKS
    names = list(dict.fromkeys(one.stretch for one in columns))
    shade = {name: SHADES[at % len(SHADES)] for at, name in enumerate(names)}
    for row in reversed(range(HEIGHT)):
        spans: list[Span | str] = [INDENT]
        for stretch, group in groupby(columns, key=lambda one: one.stretch):
            text = "".join(_block(one.value / highest, row, blocks) for one in group)
            spans.append(Span(text, shade[stretch]))
        if row == HEIGHT - 1:
            spans.append(Span(f"{GAP}{safe(curve.top, theme)}", "dim"))
        lines.append(line(*spans))
    return [*lines, *_axis(columns, theme)]


def _block(share: float, row: int, blocks: str) -> str:
    """Return the character of one row of a column that is so high."""
    eighths = round(share * HEIGHT * 8) - row * 8
    if share > 0 and row == 0:
        eighths = max(eighths, 1)
    return blocks[min(max(eighths, 0), 8)]


def _spread(points: Sequence[CurvePoint], width: int) -> list[CurvePoint]:
    """Return one point for each column; each has the highest value of what it stands for.

    Every stretch keeps at least one column, and has as many as its steps ask for.
    """
    groups = [list(group) for _, group in groupby(points, key=lambda one: one.stretch)]
    found: list[CurvePoint] = []
    for held, count in zip(groups, _counts(groups, width), strict=True):
        for column in range(count):
            first = len(held) * column // count
            last = max(first + 1, len(held) * (column + 1) // count)
            found.append(held[0]._replace(value=max(one.value for one in held[first:last])))
    return found


def _counts(groups: Sequence[Sequence[CurvePoint]], width: int) -> list[int]:
    """Return the columns of each stretch, together at most `width` where there is room at all."""
    steps = [sum(one.steps for one in held) for held in groups]
    whole = sum(steps) or 1
    counts = [max(1, round(width * one / whole)) for one in steps]
    while sum(counts) > width and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    return counts


def _axis(columns: Sequence[CurvePoint], theme: Theme) -> list[Line]:
    """Name the stretches below their columns; short ones get the room that is there."""
    text = ""
    for stretch, group in groupby(columns, key=lambda one: one.stretch):
        count = len(list(group))
        room = max(count - 1, 0)
        name = safe(stretch, theme)
        shown = name if cells(name) <= room else (name[:room] if room >= LEAST_NAME else "")
        text += f"{shown:<{count}}"
    return [line(INDENT, Span(text.rstrip(), "dim"))] if text.strip() else []
