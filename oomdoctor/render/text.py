"""A diagnosis as a page of text: plain without any library, coloured through rich."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from oomdoctor.render.layout import BLANK, Line, plain
from oomdoctor.render.parts.balance import balance, ranks
from oomdoctor.render.parts.causes import causes, side_findings
from oomdoctor.render.parts.fixes import fixes
from oomdoctor.render.parts.next_steps import next_steps
from oomdoctor.render.parts.proofs import proofs
from oomdoctor.render.parts.remarks import conflicts, facts, faults, not_evaluated, notes
from oomdoctor.render.parts.verdict import verdict
from oomdoctor.render.theme import STYLES, Theme
from oomdoctor.render.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from oomdoctor.model.plan import Diagnosis

    Section = Callable[[Diagnosis, Theme, View], list[Line]]


def job(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Lay out the job as its configs tell it, with its memory by formula."""
    del view
    if not diagnosis.understood:
        return []
    from oomdoctor.render.lint.understood import tables

    return tables(diagnosis.understood, diagnosis.job_files, theme)


SECTIONS: Sequence[Section] = (
    verdict,
    balance,
    ranks,
    causes,
    fixes,
    next_steps,
    proofs,
    job,
    side_findings,
    conflicts,
    not_evaluated,
    faults,
    notes,
    facts,
)


def render(
    diagnosis: Diagnosis, *, width: int, colour: bool, unicode: bool, view: View | None = None
) -> str:
    """Return the page for a stream with these abilities; the words are the same in all of them."""
    theme = Theme(width=width, colour=colour, unicode=unicode)
    return paint(page(diagnosis, theme, view or View()), theme)


def page(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Lay the sections that have something to say out, one blank line between them."""
    sections: Sequence[Section] = SECTIONS
    if view.next_only:
        sections = (next_steps,)
    elif view.verbosity < 0:
        sections = (verdict,)
    lines: list[Line] = []
    for section in sections:
        part = section(diagnosis, theme, view)
        lines += [BLANK, *part] if lines and part else part
    return lines


def paint(lines: Iterable[Line], theme: Theme) -> str:
    """Return the lines as text, in colour if the theme has it."""
    lines = list(lines)
    if not (lines and theme.colour):
        return plain(lines) + "\n" if lines else ""
    from rich.console import Console
    from rich.style import Style
    from rich.text import Text

    styles = {name: Style.parse(value) for name, value in STYLES.items()}
    console = Console(
        force_terminal=True, color_system="standard", no_color=False, legacy_windows=False
    )
    with console.capture() as captured:
        for one in lines:
            text = Text()
            for style, spans in groupby(one, key=lambda span: span.style):
                text.append("".join(span.text for span in spans), styles.get(style))
            text.rstrip()
            console.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)
    return captured.get()
