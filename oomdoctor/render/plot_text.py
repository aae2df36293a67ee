"""Plots in a terminal: signs on a grid, the line dotted, the level dashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.escape import cells
from oomdoctor.render.layout import Line, Span, line
from oomdoctor.render.parts.pieces import INDENT, paragraph, safe

if TYPE_CHECKING:
    from oomdoctor.render.page import Plot
    from oomdoctor.render.theme import Theme

HEIGHT = 12
WIDEST = 72
NARROWEST = 20
GAP = "  "
# good and bad points, the line, the level, the axes: Unicode, ASCII
SIGNS = (("●", "o"), ("✖", "x"), ("·", "."), ("╌", "-"), ("│", "|"), ("└", "+"), ("─", "-"))
GOOD, BAD, DOT, DASH, SIDE, CORNER, FLOOR = range(7)
STYLES = {GOOD: "good", BAD: "bad", DOT: "bar1", DASH: "aside"}


def plot_lines(plot: Plot, theme: Theme) -> list[Line]:
    """Return a plot as lines."""
    labels = [plot.top, "" if plot.level is None else plot.level[0]]
    room = max(cells(safe(one, theme)) for one in labels)
    width = max(min(theme.width - len(INDENT) - 1 - len(GAP) - room, WIDEST), NARROWEST)
    grid = _grid(plot, width)
    signs = [pair[0 if theme.unicode else 1] for pair in SIGNS]
    lines = paragraph(plot.caption, theme, first=INDENT, style="dim")
    level = None if plot.level is None else _row(plot, plot.level[1])
    for row in range(HEIGHT):
        spans: list[Span | str] = [INDENT, Span(signs[SIDE], "dim")]
        for column in range(width):
            sign = grid.get((row, column))
            spans.append(" " if sign is None else Span(signs[sign], STYLES[sign]))
        label = plot.level[0] if plot.level is not None and row == level else ""
        label = plot.top if row == 0 and not label else label
        spans.append(Span(f"{GAP}{safe(label, theme)}" if label else "", "dim"))
        lines.append(line(*spans))
    lines.append(line(INDENT, Span(signs[CORNER] + signs[FLOOR] * width, "dim")))
    right = safe(f"{plot.across} {plot.right}", theme)
    lines.append(line(INDENT, Span(f" 0{right:>{max(width - 1, cells(right) + 1)}}", "dim")))
    legend = ", ".join(
        f"{signs[at]} {meaning}" for at, (_, meaning) in zip((GOOD, BAD), plot.words, strict=False)
    )
    return lines + (paragraph(legend, theme, first=INDENT, style="dim") if legend else [])


def _grid(plot: Plot, width: int) -> dict[tuple[int, int], int]:
    """Return the sign of each cell that has one; points lie above the line, it above the level."""
    found: dict[tuple[int, int], int] = {}
    if plot.level is not None:
        row = _row(plot, plot.level[1])
        found.update({(row, column): DASH for column in range(0, width, 2)})
    for x, y in _filled(plot.line, width):
        if 0 <= y <= plot.height:
            found[_row(plot, y), _column(plot, x, width)] = DOT
    good = plot.words[0][0] if plot.words else ""
    for bad in (False, True):  # where two meet, the one that failed is seen
        for one in plot.points:
            if (one.word != good) == bad:
                at = (_row(plot, one.y), _column(plot, one.x, width))
                found[at] = BAD if bad else GOOD
    return found


def _filled(places: tuple[tuple[float, float], ...], width: int) -> list[tuple[float, float]]:
    """Return the places of a line with as many between them as there are columns."""
    if len(places) < 2:
        return list(places)
    left, right = places[0][0], places[-1][0]
    found = []
    at = 0
    for column in range(width + 1):
        x = left + (right - left) * column / width
        while at < len(places) - 2 and places[at + 1][0] < x:
            at += 1
        (x0, y0), (x1, y1) = places[at], places[at + 1]
        found.append((x, y0 + (y1 - y0) * (x - x0) / ((x1 - x0) or 1.0)))
    return found


def _row(plot: Plot, y: float) -> int:
    share = y / (plot.height or 1.0)
    return min(max(round((1 - share) * (HEIGHT - 1)), 0), HEIGHT - 1)


def _column(plot: Plot, x: float, width: int) -> int:
    return min(max(round(x / (plot.width or 1.0) * (width - 1)), 0), width - 1)
