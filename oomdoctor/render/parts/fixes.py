"""What to change: patches with what they save and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.layout import Line, Span, flow, line
from oomdoctor.render.parts.pieces import DEEP, INDENT, heading, paragraph, safe
from oomdoctor.render.words import (
    SAFETY,
    price_words,
    saving_words,
    sentence,
    settings_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.model.plan import Diagnosis, Patch, Prescription
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View

DIFF_STYLES = {"+": "added", "-": "removed", "@": "hunk"}


def fixes(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the prescriptions in their order, best first."""
    if not diagnosis.prescriptions:
        return []
    lines = [heading("What to change, best first")]
    most = len(diagnosis.prescriptions) if view.explain else view.fixes
    leading = diagnosis.causes[0].cause if diagnosis.causes else None
    for number, one in enumerate(diagnosis.prescriptions[:most], start=1):
        lines += _fix(one, number, leading, theme)
    more = [one.title for one in diagnosis.prescriptions[most:]]
    if more:
        lines += paragraph(
            f"{len(more)} more with --explain: {'; '.join(more)}", theme, first=INDENT, style="dim"
        )
    for text in diagnosis.suppressed:
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('dot')} ", style="dim")
    return lines


def _fix(one: Prescription, number: int, leading: str | None, theme: Theme) -> list[Line]:
    aimed = "" if one.cause == leading else f", if it is {one.cause}"
    spans = [
        Span(sentence(safe(one.title, theme)), "strong"),
        Span(f" [{one.fix_id}: {SAFETY[one.safety.value]}{aimed}]", "dim"),
    ]
    lines = flow(spans, width=theme.width, first=f"{INDENT}{number}. ")
    saving = saving_words(one.saving) if one.saving else "saving not known"
    lines += paragraph(f"{saving}; {price_words(one)}", theme, style="good" if one.saving else "")
    if one.advice:
        lines += paragraph(sentence(one.advice), theme)
    for patch in one.patches:
        lines += patch_lines(patch, theme)
    for caution in one.cautions:
        spans = [Span("caution", "aside"), Span(f": {sentence(safe(caution, theme))}")]
        lines += flow(spans, width=theme.width, first=f"{DEEP}{theme.glyph('aside')} ")
    return lines


def patch_lines(
    patch: Patch, theme: Theme, *, shown_of: Callable[[list[str]], list[str]] = list
) -> list[Line]:
    """Return what of a diff is shown, or the settings as they are typed; never wrapped."""
    if patch.diff:
        texts = shown_of(patch.diff.rstrip("\n").split("\n"))
        return [
            line(DEEP, Span(safe(text, theme), DIFF_STYLES.get(text[:1], ""))) for text in texts
        ]
    where = safe(patch.file or patch.dialect, theme)
    shown = [line(DEEP, Span(f"{where}:", "place"))] if patch.dialect != "env" else []
    typed = settings_lines(patch)
    return [
        *shown,
        *(line(f"{DEEP}{INDENT}", Span(safe(text, theme), "command")) for text in typed),
    ]
