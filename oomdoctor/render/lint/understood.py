"""The job as understood: what it trains and how, and its memory in six parts as a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Origin
from oomdoctor.render.bars import Share, bar
from oomdoctor.render.escape import cells
from oomdoctor.render.layout import Line, Span, flow
from oomdoctor.render.parts.pieces import INDENT, heading, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.lint import JobReport, UnderstoodRow
    from oomdoctor.render.theme import Theme

JOB, MEMORY = "job", "memory"
MARK = "formula: "
SUM = "sum"  # the row of the sum starts with this word
WIDEST_BAR = 80
STYLES = 4
# a fill per part, told apart by shape and not by colour alone
FILLS = (
    ("█", "#"),
    ("▓", "="),
    ("▒", "o"),
    ("▚", "+"),
    ("▤", "%"),
    ("▥", "~"),
    ("▦", "*"),
    ("░", "."),
)
# a word for what is not simply stated
SAID = {Origin.ASSUMED: "assumed"}


def understood(job: JobReport, theme: Theme) -> list[Line]:
    """Return the tables about a job and its memory; nothing where it was not understood."""
    return tables(job.understood, [file.path for file in job.files], theme)


def tables(
    understood_rows: Sequence[UnderstoodRow], files: Sequence[str], theme: Theme
) -> list[Line]:
    """Return the tables of rows about the job that these files are."""
    rows = {
        group: [row for row in understood_rows if row.group == group] for group in (JOB, MEMORY)
    }
    width = max((cells(row.name) for row in understood_rows), default=0)
    lines: list[Line] = []
    if rows[JOB]:
        lines.append(heading(f"The job as understood: {safe(', '.join(files), theme)}"))
        for row in rows[JOB]:
            lines += _row(row, theme, width=width, mark="")
    if rows[MEMORY]:
        lines.append(heading("Its memory on one card, by formula"))
        lines += _bar(rows[MEMORY], theme)
        for at, row in enumerate(rows[MEMORY]):
            mark = " " if is_sum(row) or row.bytes is None else _fill(at, theme)
            lines += _row(row, theme, width=width, mark=f"{mark} ", style=_style(at))
    return lines


def is_sum(row: UnderstoodRow) -> bool:
    """Say whether a row is the sum of the others."""
    return row.name.startswith(SUM)


def _fill(order: int, theme: Theme) -> str:
    fancy, plain = FILLS[order % len(FILLS)]
    return fancy if theme.unicode else plain


def _style(order: int) -> str:
    return f"bar{order % STYLES}"


def _bar(rows: Sequence[UnderstoodRow], theme: Theme) -> list[Line]:
    """Draw the parts that are known, of the card where the sum is compared with one."""
    shares = [
        Share(row.bytes, _fill(at, theme), _style(at))
        for at, row in enumerate(rows)
        if row.bytes and not is_sum(row)
    ]
    if len(shares) < 2:
        return []
    whole = max((row.of_bytes or 0 for row in rows), default=0)
    width = min(theme.width - len(INDENT), WIDEST_BAR)
    drawn = bar(shares, whole=whole, width=width)
    if whole > sum(share.size for share in shares):
        # what is left of the card is drawn, too, so that the bar has an end
        rest = theme.glyph("dot")
        drawn = tuple(Span(rest * len(one.text), "dim") if not one.style else one for one in drawn)
    return [(Span(INDENT), *drawn)]


def source_words(row: UnderstoodRow) -> str:
    """Say where a row's value comes from; what is unknown comes from nowhere."""
    if row.group == MEMORY and row.bytes is None:
        return ""
    word = SAID.get(row.origin, "")
    # the heading says already that figures of memory are formulas
    source = (row.source or "").removeprefix(MARK)
    return ": ".join(part for part in (word, source) if part)


def _row(row: UnderstoodRow, theme: Theme, *, width: int, mark: str, style: str = "") -> list[Line]:
    name = row.name.ljust(width)
    first = f"{INDENT}{mark}{name}  "
    spans = [Span(safe(row.text, theme), "strong" if is_sum(row) else "")]
    source = source_words(row)
    if source:
        spans.append(Span(f" ({safe(source, theme)})", "dim"))
    wrapped = flow(spans, width=theme.width, first=" " * cells(first))
    head = (Span(INDENT), Span(mark, style), Span(f"{safe(name, theme)}  "), *wrapped[0][1:])
    return [head, *wrapped[1:]]
