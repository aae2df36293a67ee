"""The end of the page: what was not evaluated, contradictions, faults, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.registry import find
from oomdoctor.model.enums import Kind
from oomdoctor.render.layout import Line, Span, flow
from oomdoctor.render.parts.pieces import INDENT, heading, paragraph, quoted, safe
from oomdoctor.render.words import fact_words, place

if TYPE_CHECKING:
    from oomdoctor.model.core import Fact
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View


def not_evaluated(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the rules whose gate stayed open, with the facts that would close it.

    Only who asks for more wants them by name: what helps is among the next measurements.
    """
    listed = diagnosis.not_evaluated
    if not listed or view.verbosity < 0:
        return []
    lines = [heading("Not evaluated, for want of facts")]
    if not (view.explain or view.verbosity > 0):
        text = f"{len(listed)} {'rule' if len(listed) == 1 else 'rules'} (-v names them)"
        return lines + flow([Span(text, "dim")], width=theme.width, first=INDENT)
    for one in listed:
        text = f"{one.code} needs {', '.join(one.needs)}"
        lines += paragraph(text, theme, first=INDENT, rest=INDENT * 3)
    return lines


def conflicts(diagnosis: Diagnosis, theme: Theme, _view: View) -> list[Line]:
    """Return the facts about which two sources disagree."""
    if not diagnosis.conflicts:
        return []
    lines = [heading("Sources that disagree")]
    for one in diagnosis.conflicts:
        text = f"{one.key}: {_said(one.kept)} was taken, {_said(one.dropped)} was not"
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('aside')} ")
    return lines


def _said(fact: Fact) -> str:
    where = place(fact.quotes[0]) if fact.quotes else fact.source or fact.origin.value
    return f"{printed(fact)} ({where})"


def printed(fact: Fact) -> str:
    """Print a fact's value in the unit of its kind."""
    spec = find(fact.key)
    return fact_words(fact, is_size=spec is not None and spec.kind is Kind.BYTES)


def faults(diagnosis: Diagnosis, theme: Theme, _view: View) -> list[Line]:
    """Return the rules that could not be used."""
    if not diagnosis.faults:
        return []
    lines = [heading("Rules that could not be used")]
    for one in diagnosis.faults:
        text = f"{one.code}: {one.message}"
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('aside')} ")
    return lines


def notes(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return what was cut, replaced or left out while the inputs were read."""
    if not diagnosis.notes or view.verbosity < 0:
        return []
    lines = [heading("Notes")]
    for text in diagnosis.notes:
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('dot')} ")
    return lines


def facts(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return every fact that was read, with where it comes from (only with the full chain)."""
    if not view.explain or not diagnosis.facts:
        return []
    lines = [heading("Facts")]
    for key in sorted(diagnosis.facts):
        fact = diagnosis.facts[key]
        source = fact.source or (place(fact.quotes[0]) if fact.quotes else "")
        origin = f"({fact.origin.value}{': ' if source else ''}{safe(source, theme)})"
        spans = [Span(f"{key} = {safe(printed(fact), theme)} "), Span(origin, "dim")]
        lines += flow(spans, width=theme.width, first=INDENT, rest=INDENT * 3)
        lines += quoted(fact.quotes[:1], theme) if view.verbosity > 0 else []
    return lines
