"""The ranked causes: how probable, what they explain, the lines that speak for and against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Truth
from oomdoctor.reason.narrate import against
from oomdoctor.render.layout import Line, Span, flow
from oomdoctor.render.parts.pieces import DEEP, INDENT, heading, listed, paragraph, quoted, safe
from oomdoctor.render.words import TELLING_NATS, percent, reasons, says, shares
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.model.core import Finding, Weight
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View

SIGNS = {Truth.TRUE: "+", Truth.FALSE: "-", Truth.UNKNOWN: "?"}
SEVERITIES = {"error": "bad", "warning": "aside", "info": "none"}


def causes(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the ranked causes, with what is left over for something else."""
    if not diagnosis.causes:
        return []
    probabilities, other = shares(diagnosis.causes)
    title = "Causes, most probable first" if len(diagnosis.causes) > 1 else "Cause"
    lines = [heading(title)]
    shown = diagnosis.causes[: view.top]
    for rank, finding in enumerate(shown):
        full = view.explain or rank == 0
        lines += _head(finding, rank, probabilities[rank], theme)
        lines += _body(finding, theme, view) if full else _brief(finding, theme)
        lines += _chain(finding, theme) if view.explain else []
    hidden = diagnosis.causes[len(shown) :]
    if hidden:
        names = [
            f"{one.cause} ({percent(p)})"
            for one, p in zip(hidden, probabilities[len(shown) :], strict=True)
        ]
        lines += listed("less probable", names, theme, first=INDENT)
    if other > 0:
        lines += paragraph(f"something else: {percent(other)}", theme, first=INDENT)
    return lines


def _head(finding: Finding, rank: int, probability: float, theme: Theme) -> list[Line]:
    number = f"{INDENT}{rank + 1}. "
    spans = [
        Span(percent(probability), "bad" if rank == 0 else "strong"),
        Span(f" {safe(says(finding), theme)} "),
        Span(f"[{finding.cause}, {finding.code}]", "dim"),
    ]
    return flow(spans, width=theme.width, first=number)


def _body(finding: Finding, theme: Theme, view: View) -> list[Line]:
    most = None if view.explain else view.quotes
    lines: list[Line] = []
    if finding.explains_bytes is not None:
        lines += paragraph(f"explains {format_size(finding.explains_bytes)}", theme, style="dim")
    for reason in reasons(finding)[:most]:
        lines += paragraph(reason, theme, first=f"{DEEP}+ ")
    lines += quoted(finding.quotes, theme, most=most)
    lines += _against(finding, theme, most)
    lines += listed("not known", finding.missing, theme)
    lines += listed("assumed", finding.assumed, theme)
    return lines


def _against(finding: Finding, theme: Theme, most: int | None) -> list[Line]:
    """Return what speaks against the cause with some weight, in words and in quotes."""
    sentences = against(finding, least=TELLING_NATS)[:most]
    if not sentences:
        return []
    lines = paragraph("speaks against it:", theme, style="dim")
    for sentence in sentences:
        lines += paragraph(sentence, theme, first=f"{DEEP}- ")
    return lines + quoted(finding.against, theme, most=most)


def _brief(finding: Finding, theme: Theme) -> list[Line]:
    """Return an alternative with its best line, and what would raise or rule it out."""
    lines = quoted(finding.quotes[:1], theme)
    lines += _against(finding, theme, 1)
    return lines + listed("not known", finding.missing[:3], theme)


def _chain(finding: Finding, theme: Theme) -> list[Line]:
    """Return gate and evidence lines with what each adds."""
    lines = listed("gate", [finding.gate.truth.value, *sorted(finding.gate.read)], theme)
    for weight in finding.weights:
        spans = [Span(_weight(weight), "dim"), Span(safe(f" {weight.label}", theme))]
        lines += flow(spans, width=theme.width, first=DEEP, rest=DEEP + " " * 10)
    return lines + listed("also spoke", finding.other_codes, theme)


def _weight(weight: Weight) -> str:
    counted = "" if weight.counted else " (not counted: a stronger line of its group speaks)"
    return f"{SIGNS[weight.verdict.truth]} {weight.nats:+5.2f} nats{counted}"


def side_findings(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return what stands out in the config beside the cause."""
    if not diagnosis.side_findings:
        return []
    lines = [heading("Also worth knowing")]
    for finding in diagnosis.side_findings:
        role = SEVERITIES[finding.severity.value]
        spans = [
            Span(finding.severity.value, role),
            Span(f": {safe(says(finding), theme)} "),
            Span(f"[{finding.code}]", "dim"),
        ]
        lines += flow(spans, width=theme.width, first=f"{INDENT}{theme.glyph(role)} ")
        lines += quoted(finding.quotes, theme, most=None if view.explain else 2)
    return lines
