"""A report's page as Markdown, for an issue or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.render.escape import code_block, html, markdown
from oomdoctor.render.items_markdown import code, fold_parts, points, quotes, stack_table
from oomdoctor.render.layout import plain
from oomdoctor.render.theme import Theme

if TYPE_CHECKING:
    from oomdoctor.render.page import Chart, Page, Section, Table

BAR = 40
WIDTH = 80


def page_markdown(page: Page) -> str:
    """Return the page as a Markdown document."""
    parts = [f"## {markdown(page.title)}", *map(markdown, page.lead)]
    parts += [f"*{markdown('; '.join(page.badges))}*"] if page.badges else []
    parts += [quotes(page.quotes)] if page.quotes else []
    if page.figures:
        rows = (
            f"| {markdown(one.name)} | {markdown(one.value)} | {markdown(one.meaning)} |"
            for one in page.figures
        )
        parts.append("\n".join(["| | | |", "|---|---:|---|", *rows]))
    for section in page.sections:
        parts += _folded(section) if section.folded else _section(section)
    if page.notes:
        parts.append("\n".join(f"- {markdown(note)}" for note in page.notes))
    return "\n\n".join([*parts, f"<sub>oomdoctor {__version__}</sub>"]) + "\n"


def _section(section: Section) -> list[str]:
    return [f"### {markdown(section.title)}", *_inside(section)]


def _folded(section: Section) -> list[str]:
    return [f"<details><summary>{html(section.title)}</summary>", *_inside(section), "</details>"]


def _inside(section: Section) -> list[str]:
    parts = [*map(markdown, section.sentences)]
    parts += [stack_table(section.stack)] if section.stack is not None else []
    if section.chart is not None:
        parts.append(_chart(section.chart))
    if section.heat is not None or section.curve is not None:
        from oomdoctor.render.pictures_text import curve_lines, heat_table

        parts += [heat_table(section.heat)] if section.heat is not None else []
        if section.curve is not None:
            parts.append(code_block(plain(curve_lines(section.curve, Theme(width=WIDTH)))))
    if section.plot is not None and not section.plot.lines:
        from oomdoctor.render.plot_text import plot_lines

        parts.append(code_block(plain(plot_lines(section.plot, Theme(width=WIDTH)))))
    if section.timeline is not None:
        from oomdoctor.render.timeline_text import timeline_lines

        parts.append(code_block(plain(timeline_lines(section.timeline, Theme(width=WIDTH)))))
    if section.flame is not None:
        parts.append(_table(section.flame.table))
    parts.append(points(section.points))
    parts += [part for fold in section.folds for part in fold_parts(fold)]
    parts += map(code, section.codes)
    if section.table is not None:
        parts.append(_table(section.table))
    return [part for part in parts if part]


def _chart(chart: Chart) -> str:
    most = max((one.value for one in chart.bars), default=0) or 1
    labels = max((len(one.label) for one in chart.bars), default=0)
    rows = []
    for one in chart.bars:
        size = max(round(one.value / most * BAR), 1) if one.value else 0
        drawn = ("▒" if one.marked else "█") * size
        rows.append(f"{one.label:>{labels}}  {drawn:<{BAR}}  {one.note}")
    if chart.legend:
        rows.append(f"▒ {chart.legend}")
    return code_block("\n".join(rows))


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    ends = ("---:" if at in table.numeric else "---" for at in range(len(table.headers)))
    lines = [
        f"| {' | '.join(map(markdown, table.headers))} |",
        f"|{'|'.join(ends)}|",
        *(f"| {' | '.join(map(markdown, row))} |" for row in table.rows),
    ]
    return "\n".join(lines)
