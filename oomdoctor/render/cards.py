"""Cards that explain one rule, one cause or one fact on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.layout import BLANK, Line, Span, flow
from oomdoctor.render.parts.pieces import INDENT, heading, listed, paragraph, safe
from oomdoctor.render.words import SAFETY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import FactSpec
    from oomdoctor.render.theme import Theme
    from oomdoctor.rules.shape import Cause, Condition, Evidence, Fix, Rule

FROM_HUNDRED = 100
JOINTS = {"all": "all of", "any": "any of", "not": "not"}


def rule_card(rule: Rule, theme: Theme) -> list[Line]:
    """Explain a rule: what it looks for, what speaks for it, what it advises."""
    lines = flow(
        [Span(f"{rule.code} {rule.name}", "strong"), Span(f": {safe(rule.title, theme)}")],
        width=theme.width,
        rest=INDENT,
    )
    about = f"{rule.severity.value}, {rule.maturity.value}, since {rule.since}"
    cause = f"cause: {rule.cause}" if rule.cause else "a side finding, names no cause"
    cause = f"a lint rule about {rule.category}" if rule.category else cause
    lines += paragraph(f"{cause}; {about}", theme, first=INDENT, style="dim")
    lines += _text("Why", rule.why, theme)
    lines += [BLANK, heading("Applies when"), *_condition(rule.when, theme, INDENT)]
    lines += _evidence(rule.evidence, theme)
    lines += _fixes(rule.fixes, theme)
    lines += _known(rule, theme)
    lines += _text("Known problems", rule.known_problems, theme)
    lines += [BLANK, heading("References")] if rule.references else []
    for link in rule.references:
        lines += paragraph(link, theme, first=INDENT)
    return lines


def cause_card(cause: Cause, rules: Sequence[Rule], theme: Theme) -> list[Line]:
    """Explain a cause: what it means, what tells it apart, which rules speak for it."""
    lines = flow(
        [Span(cause.id, "strong"), Span(f": {safe(cause.definition, theme)}")],
        width=theme.width,
        rest=INDENT,
    )
    prior = f"{FROM_HUNDRED * cause.prior:.2g} of 100 such failures"
    reason = f" ({cause.prior_reason})" if cause.prior_reason else ""
    lines += paragraph(
        f"what runs out: {cause.resource}; how common: {prior}{reason}",
        theme,
        first=INDENT,
        style="dim",
    )
    lines += _text("What tells it apart", cause.tells_apart, theme)
    if cause.near:
        lines += [BLANK, *listed("near causes", cause.near, theme, first="")]
    lines += [BLANK, heading("Rules that speak for it")]
    for rule in rules:
        lines += paragraph(f"{rule.code} {rule.title}", theme, first=INDENT, rest=INDENT * 5)
    if not rules:
        lines += paragraph("none yet", theme, first=INDENT)
    return lines


def fact_card(spec: FactSpec, readers: Sequence[Rule], theme: Theme) -> list[Line]:
    """Explain a fact: its meaning and kind, how to obtain it, which rules read it."""
    lines = flow(
        [Span(spec.key, "strong"), Span(f": {safe(spec.doc, theme)}")],
        width=theme.width,
        rest=INDENT,
    )
    lines += paragraph(f"kind: {spec.kind.value}", theme, first=INDENT, style="dim")
    lines += listed("one of", spec.choices, theme, first=INDENT)
    if spec.closed_by:
        text = f"known to be absent once one of these is read: {', '.join(spec.closed_by)}"
        lines += paragraph(text, theme, first=INDENT)
    lines += _text("How to obtain it", spec.obtain or "", theme)
    lines += [BLANK, heading("By hand")]
    value = "true" if spec.kind.value == "bool" else "VALUE"
    lines += paragraph(f"oomdoctor diagnose LOG --fact {spec.key}={value}", theme, first=INDENT)
    if readers:
        codes = [rule.code for rule in readers]
        lines += [BLANK, *listed("read by", codes, theme, first="")]
    return lines


def _text(title: str, text: str, theme: Theme) -> list[Line]:
    if not text.strip():
        return []
    lines = [BLANK, heading(title)]
    for part in text.strip().split("\n\n"):
        lines += paragraph(" ".join(part.split()), theme, first=INDENT)
    return lines


def _known(rule: Rule, theme: Theme) -> list[Line]:
    """Say how the claim of a lint rule is known, and in which versions it holds."""
    from oomdoctor.facts.proofs import proof_line

    said = [f"{package} refuses it from {first} on" for package, first in rule.breaks_from.items()]
    lines = _text("Versions", "; ".join(said), theme)
    if rule.source is not None:
        lines += _text("How it is known", f"{rule.basis or 'source'}: {rule.source}", theme)
    proven = proof_line(rule.name)
    if proven is not None:
        lines += [] if rule.source is not None else [BLANK, heading("How it is known")]
        lines += paragraph(proven, theme, first=INDENT)
    return lines


def _condition(condition: Condition, theme: Theme, indent: str) -> list[Line]:
    if condition.leaf is not None:
        return paragraph(condition.leaf.source, theme, first=f"{indent}- ")
    lines = paragraph(f"{JOINTS.get(condition.op, condition.op)}:", theme, first=indent)
    for part in condition.parts:
        lines += _condition(part, theme, indent + INDENT)
    return lines


def _evidence(evidence: Sequence[Evidence], theme: Theme) -> list[Line]:
    if not evidence:
        return []
    lines = [BLANK, heading("Evidence: seen in 100 such cases / in 100 others")]
    for one in evidence:
        seen = f"{FROM_HUNDRED * one.in_cause:4.3g} / {FROM_HUNDRED * one.otherwise:4.3g}  "
        group = f" [{one.group}]" if one.group else ""
        spans = [Span(safe(one.label, theme)), Span(group, "dim")]
        lines += flow(spans, width=theme.width, first=f"{INDENT}{seen}")
    return lines


def _fixes(fixes: Sequence[Fix], theme: Theme) -> list[Line]:
    if not fixes:
        return []
    lines = [BLANK, heading("Fixes")]
    for fix in fixes:
        dialects = f"; spelled for {', '.join(fix.patch)}" if fix.patch else ""
        spans = [
            Span(safe(fix.title, theme)),
            Span(f" [{fix.id}: {SAFETY[fix.safety.value]}{dialects}]", "dim"),
        ]
        lines += flow(spans, width=theme.width, first=f"{INDENT}- ")
        if fix.saves:
            lines += paragraph(f"saves {fix.saves.likely.source}", theme, first=INDENT * 2)
    return lines
