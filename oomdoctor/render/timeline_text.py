"""A time line in a terminal: one row of blocks for each series, phases and moments below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.escape import cells
from oomdoctor.render.layout import Line, Span, line
from oomdoctor.render.parts.pieces import INDENT, paragraph, safe
from oomdoctor.render.pictures_text import ASCII_BLOCKS, BLOCKS, LEAST_NAME
from oomdoctor.render.ticks import number_words
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.page import Series, Timeline
    from oomdoctor.render.theme import Theme

GAP = "  "
WIDEST = 100
NARROWEST = 20
HEIGHTS = {1: 5, 2: 2}
"""Rows of each series by how many there are; one where there are more."""
MOST_MARKS = 6
STYLES = 4
MARKS = ("▲", "^")


def timeline_lines(timeline: Timeline, theme: Theme) -> list[Line]:
    """Return a time line as lines; nothing where it has no points."""
    shown = [one for one in timeline.series if one.points]
    if not shown:
        return []
    xs = [x for one in shown for x, _ in one.points]
    xs += [x for one in timeline.phases for x in (one.start, one.end)]
    xs += [one.at for one in timeline.marks]
    left, right = min(xs), max(xs)
    top = max([y for one in shown for _, y in one.points] + [y for _, y in timeline.levels]) or 1.0
    names = max(cells(safe(one.name, theme)) for one in shown)
    ends = [f"up to {format_size(max(y for _, y in one.points))}" for one in shown]
    room = theme.width - len(INDENT) - names - 2 * len(GAP) - max(map(cells, ends))
    width = max(min(room, WIDEST), NARROWEST)
    lines = paragraph(timeline.caption, theme, first=INDENT, style="dim")
    blocks = BLOCKS if theme.unicode else ASCII_BLOCKS
    high = HEIGHTS.get(len(shown), 1)
    for at, (one, end) in enumerate(zip(shown, ends, strict=True)):
        columns = _columns(one, left, right, width)
        for row in reversed(range(high)):
            name = safe(one.name, theme) if row == 0 else ""
            drawn = "".join(_block(value, top, (row, high), blocks) for value in columns)
            said = f"{GAP}{end}" if row == high - 1 else ""
            lines.append(
                line(
                    f"{INDENT}{name:<{names}}{GAP}",
                    Span(drawn, f"bar{at % STYLES}"),
                    Span(said, "dim"),
                )
            )
    margin = len(INDENT) + names + len(GAP)
    lines += _below(timeline, theme, left, right, (margin, width))
    notes = [name for name, _ in timeline.levels]
    notes += [f"{one.label} at {number_words(one.at)}" for one in timeline.marks[-MOST_MARKS:]]
    axis = f"{timeline.across} {number_words(left)} to {number_words(right)}".strip()
    return lines + paragraph("; ".join([axis, *notes]), theme, first=INDENT, style="dim")


def _block(value: float | None, top: float, place: tuple[int, int], blocks: str) -> str:
    """Return the sign of one row of a column; what is not zero is seen in the lowest row."""
    if value is None:
        return " "
    row, high = place
    eighths = round(8 * high * value / top) - 8 * row
    least = 1 if value > 0 and row == 0 else 0
    return blocks[min(max(eighths, least), 8)]


def _columns(series: Series, left: float, right: float, width: int) -> list[float | None]:
    """Return the highest value within each column; None before the first one."""
    found: list[float | None] = [None] * width
    scale = (width - 1) / ((right - left) or 1.0)
    for x, y in series.points:
        at = round((x - left) * scale)
        before = found[at]
        found[at] = y if before is None else max(before, y)
    held: float | None = None
    for at, value in enumerate(found):
        # a value lasts until the next one
        found[at] = held if value is None else value
        held = held if value is None else _last(series, at, left, scale, value)
    return found


def _last(series: Series, column: int, left: float, scale: float, value: float) -> float:
    """Return the value with which a column ends."""
    within = [y for x, y in series.points if round((x - left) * scale) == column]
    return within[-1] if within else value


def _below(
    timeline: Timeline, theme: Theme, left: float, right: float, place: tuple[int, int]
) -> list[Line]:
    """Return the rows of phases and of moments below the series."""
    margin, width = place
    scale = (width - 1) / ((right - left) or 1.0)
    rows = []
    if timeline.phases:
        cells_ = [" "] * width
        for one in timeline.phases:
            first = round((one.start - left) * scale)
            room = round((one.end - left) * scale) - first
            name = safe(one.name, theme)[: max(room - 1, 0)]
            if len(name) >= min(LEAST_NAME, len(one.name)) and cells_[first] == " ":
                _put(cells_, first, f"|{name}" if room > len(name) else name)
        rows.append("".join(cells_))
    if timeline.marks:
        sign = MARKS[0 if theme.unicode else 1]
        at = [" "] * width
        for mark in timeline.marks:
            at[round((mark.at - left) * scale)] = sign
        rows.append("".join(at))
    return [line(" " * margin, Span(row.rstrip(), "dim")) for row in rows if row.strip()]


def _put(row: list[str], at: int, text: Sequence[str]) -> None:
    for offset, sign in enumerate(text[: len(row) - at]):
        row[at + offset] = sign
