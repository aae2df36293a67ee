"""A report's page in a terminal: bars of block characters, or of ASCII ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.escape import cells, shorten
from oomdoctor.render.layout import BLANK, Line, Span, line
from oomdoctor.render.parts.pieces import INDENT, heading, paragraph, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.page import Chart, Page, Section, Table
    from oomdoctor.render.theme import Theme

EIGHTHS = " ▏▎▍▌▋▊▉█"
WIDEST_BAR = 60
NARROWEST_BAR = 8
NARROWEST_CELL = 12
GAP = "  "


def page_lines(page: Page, theme: Theme, *, brief: bool = False) -> list[Line]:
    """Return the page as lines; `brief` leaves all but the answer out."""
    lines = paragraph(page.title, theme, first="", style="heading")
    for sentence in page.lead:
        lines += paragraph(sentence, theme, first=INDENT)
    if brief:
        return lines
    if page.badges or page.quotes:
        lines += _answer(page, theme)
    widest = max((cells(one.name) for one in page.figures), default=0)
    lines += [BLANK] if page.figures else []
    for one in page.figures:
        head = f"{INDENT}{safe(one.name, theme):<{widest}}  "
        meaning = f" ({one.meaning})" if one.meaning else ""
        lines += paragraph(f"{one.value}{meaning}", theme, first=head, rest=" " * len(head))
    for section in page.sections:
        lines += [BLANK, *_section(section, theme)]
    if page.notes:
        lines += [BLANK, heading("Notes")]
        lines += [one for note in page.notes for one in paragraph(note, theme, first=INDENT)]
    return lines


def _answer(page: Page, theme: Theme) -> list[Line]:
    """Return the words beside the answer, and the lines that show it."""
    from oomdoctor.render.items_text import quote_lines

    badges = paragraph("; ".join(page.badges), theme, first=INDENT, style="dim")
    return [*(badges if page.badges else []), *quote_lines(page.quotes, theme)]


def _section(section: Section, theme: Theme) -> list[Line]:
    lines = [heading(safe(section.title, theme))]
    for sentence in section.sentences:
        lines += paragraph(sentence, theme, first=INDENT)
    if section.stack is not None:
        from oomdoctor.render.items_text import stack_lines

        lines += stack_lines(section.stack, theme)
    if section.chart is not None:
        lines += _chart(section.chart, theme)
    if section.heat is not None or section.curve is not None:
        from oomdoctor.render.pictures_text import curve_lines, heat_lines

        lines += heat_lines(section.heat, theme) if section.heat is not None else []
        lines += curve_lines(section.curve, theme) if section.curve is not None else []
    if section.plot is not None and not section.plot.lines:
        from oomdoctor.render.plot_text import plot_lines

        lines += plot_lines(section.plot, theme)
    if section.timeline is not None:
        from oomdoctor.render.timeline_text import timeline_lines

        lines += timeline_lines(section.timeline, theme)
    if section.flame is not None:
        lines += _table(section.flame.table, theme)
    if section.points or section.folds or section.codes:
        lines += _items(section, theme)
    if section.table is not None:
        lines += _table(section.table, theme)
    return lines


def _items(section: Section, theme: Theme) -> list[Line]:
    from oomdoctor.render.items_text import code_lines, fold_lines, point_lines

    return [
        *point_lines(section.points, theme),
        *(one for fold in section.folds for one in fold_lines(fold, theme)),
        *(one for code in section.codes for one in code_lines(code, theme)),
    ]


def _chart(chart: Chart, theme: Theme) -> list[Line]:
    labels = max((cells(one.label) for one in chart.bars), default=0)
    notes = max((cells(one.note) for one in chart.bars), default=0)
    room = theme.width - len(INDENT) - labels - notes - 2 * len(GAP)
    room = max(min(room, WIDEST_BAR), NARROWEST_BAR)
    most = max((one.value for one in chart.bars), default=0) or 1
    lines = []
    for one in chart.bars:
        drawn = _bar(one.value / most, room, theme, marked=one.marked)
        style = "bar3" if one.marked else "bar1"
        lines.append(
            line(
                f"{INDENT}{safe(one.label, theme):>{labels}}{GAP}",
                Span(drawn, style),
                " " * (room - cells(drawn)),
                Span(f"{GAP}{safe(one.note, theme):>{notes}}", "dim"),
            )
        )
    if chart.legend:
        sign = _bar(1.0, 1, theme, marked=True)
        lines += paragraph(f"{sign} {chart.legend}", theme, first=INDENT, style="dim")
    return lines


def _bar(share: float, room: int, theme: Theme, *, marked: bool) -> str:
    """Draw a bar; whatever is not zero is seen, and a marked one by its shape as well."""
    if share <= 0:
        return ""
    if not theme.unicode:
        return ("=" if marked else "#") * max(round(share * room), 1)
    if marked:
        return "▒" * max(round(share * room), 1)
    eighths = max(round(share * room * 8), 1)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _table(table: Table, theme: Theme) -> list[Line]:
    if not table.rows:
        return []
    rows = [tuple(safe(cell, theme) for cell in row) for row in (table.headers, *table.rows)]
    room = theme.width - len(INDENT)
    widths = _widths(rows, room=room, whole=table.whole)
    if sum(widths) + len(GAP) * (len(widths) - 1) > room:
        return _one_below_the_other(table, theme)
    lines = []
    for at, row in enumerate(rows):
        style = "dim" if at == 0 else ("strong" if at - 1 in table.marked else "")
        fitted = (
            _cell(cell, widths[column], theme, right=column in table.numeric)
            for column, cell in enumerate(row)
        )
        lines.append(line(INDENT, Span(GAP.join(fitted).rstrip(), style)))
    return lines


def _one_below_the_other(table: Table, theme: Theme) -> list[Line]:
    """Return a table that is too wide for the page: each row as a list of what it says."""
    lines = []
    for at, row in enumerate(table.rows):
        told = zip(table.headers, row, strict=True)
        text = "; ".join(f"{name}: {cell}" if name else cell for name, cell in told if cell)
        style = "strong" if at in table.marked else ""
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('dot')} ", style=style)
    return lines


def _widths(rows: Sequence[tuple[str, ...]], *, room: int, whole: frozenset[int]) -> list[int]:
    """Return the width of each column; the widest that may be cut gives way until all fit."""
    widths = [max(cells(row[at]) for row in rows) for at in range(len(rows[0]))]
    while sum(widths) + len(GAP) * (len(widths) - 1) > room:
        width, at = max((0 if at in whole else width, -at) for at, width in enumerate(widths))
        if width <= NARROWEST_CELL:
            break
        widths[-at] -= 1
    return widths


def _cell(text: str, width: int, theme: Theme, *, right: bool) -> str:
    shown = shorten(text, width, mark=theme.glyph("cut"))
    blanks = " " * (width - cells(shown))
    return blanks + shown if right else shown + blanks
