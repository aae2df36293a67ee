"""The first lines: what is the answer, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.layout import Line, Span, flow
from oomdoctor.render.parts.pieces import DEEP, INDENT, quoted, safe, whole_quote
from oomdoctor.render.words import answer_words, percent, sentence, shares

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View


def verdict(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the answer in a sentence, with its sign, its probability and the failing line."""
    role, words = answer_words(diagnosis)
    head, colon, rest = sentence(safe(diagnosis.headline, theme)).partition(":")
    spans = [Span(head, role), Span(f"{colon}{rest}")]
    lines = flow(spans, width=theme.width, first=f"{theme.glyph(role)} ")
    lead = "; ".join([*words, *_lead(diagnosis)])
    lines += flow([Span(safe(lead, theme), "dim")], width=theme.width, first=INDENT)
    if view.verbosity < 0:
        return lines
    if diagnosis.event:
        return lines + whole_quote(diagnosis.event.line_quote, theme, first=DEEP)
    return lines + quoted(diagnosis.signs, theme, most=3)


def _lead(diagnosis: Diagnosis) -> list[str]:
    """Name the leading cause and say how sure it is."""
    if not diagnosis.causes:
        return []
    first = diagnosis.causes[0]
    probability = percent(shares(diagnosis.causes)[0][0])
    sure = "conclusive" if diagnosis.conclusive else "not conclusive"
    return [f"leading: {first.cause} ({first.code}), {probability}, {sure}"]
