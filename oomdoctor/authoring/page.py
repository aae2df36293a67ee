"""A rule as a page with fixed sections, in Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor.model.enums import Truth
from oomdoctor.rules.evaluate import leaves_of, nats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.rules.shape import Cause, Condition, Evidence, Fix, Rule

SECTIONS = (
    "What it says",
    "When it applies",
    "Why",
    "Evidence",
    "How it is known",
    "Fixes",
    "Known problems",
    "References",
)


def markdown_page(rule: Rule, cause: Cause | None) -> str:
    """Return the page of a rule in Markdown."""
    parts = [f"# {rule.code}: {rule.title}", _summary(rule, cause)]
    for section in SECTIONS:
        lines = _body(section, rule, cause)
        parts += [f"## {section}", "\n".join(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(rule: Rule, cause: Cause | None) -> str:
    about = f"cause `{rule.cause}`" if rule.cause else "side finding"
    prior = f", prior {cause.prior:g}" if cause else ""
    words = f"{about}{prior} · {rule.severity.value} · {rule.maturity.value} · since {rule.since}"
    return f"{rule.name} · {words}"


def _body(section: str, rule: Rule, cause: Cause | None) -> list[str]:
    bodies = {
        "What it says": [rule.says or rule.title, *_definition(cause)],
        "When it applies": list(_condition_lines(rule.when)),
        "Why": _lines(rule.why),
        "Evidence": _evidence_table(rule) or ["None: the gate alone decides."],
        "How it is known": _known(rule),
        "Fixes": [line for fix in rule.fixes for line in _fix_lines(fix)] or ["None."],
        "Known problems": _lines(rule.known_problems),
        "References": [f"- <{link}>" for link in rule.references],
    }
    return bodies[section]


def _known(rule: Rule) -> list[str]:
    """Say how the claim of a lint rule is known, and in which versions it holds."""
    from oomdoctor.facts.proofs import proof_line

    lines = [f"- {basis}: {rule.source}" for basis in (rule.basis,) if rule.source is not None]
    proven = proof_line(rule.name)
    if proven is not None:
        lines.append(f"- {proven}")
    refused = rule.breaks_from.items()
    lines += (f"- {package} refuses it from {first} on" for package, first in refused)
    return lines or ["From what the references say."]


def _definition(cause: Cause | None) -> list[str]:
    if cause is None:
        return []
    return ["", f"The cause: {cause.definition}", "", f"Tells it apart: {cause.tells_apart}"]


def _lines(text: str) -> list[str]:
    return text.strip().split("\n")


def _condition_lines(condition: Condition, depth: int = 0) -> Iterator[str]:
    indent = "  " * depth
    if condition.leaf is not None:
        yield f"{indent}- `{condition.leaf.source}`"
        return
    words = {"all": "all of", "any": "any of", "not": "not"}
    yield f"{indent}- {words[condition.op]}"
    for part in condition.parts:
        yield from _condition_lines(part, depth + 1)


def _sources(condition: Condition) -> list[str]:
    return [leaf.source for leaf in leaves_of(condition)]


def _evidence_table(rule: Rule) -> list[str]:
    if not rule.evidence:
        return []
    head = "| line | seen with the cause | otherwise | if true | if false | group |"
    return [head, "|---|---|---|---|---|---|", *(_evidence_row(line) for line in rule.evidence)]


def _evidence_row(line: Evidence) -> str:
    sources = " · ".join(_sources(line.condition))
    label = line.label if line.label == sources else f"{line.label} (`{sources}`)"
    cells = (
        label.replace("|", "\\|"),
        f"{line.in_cause:g}",
        f"{line.otherwise:g}",
        f"{nats(line, Truth.TRUE):+.2f} nats",
        f"{nats(line, Truth.FALSE):+.2f} nats",
        line.group or "",
    )
    return f"| {' | '.join(cells)} |"


def _fix_lines(fix: Fix) -> Iterator[str]:
    price = f"{fix.safety.value}, step time x {fix.time_factor:g}, quality: {fix.quality}"
    yield f"- **{fix.title}** (`{fix.id}`; {price})"
    for word, condition in (("needs", fix.needs), ("already done where", fix.in_force)):
        if condition is not None:
            yield f"  - {word} `{' · '.join(_sources(condition))}`"
    if fix.saves is not None:
        saves = fix.saves
        yield (
            f"  - saves `{saves.likely.source}`, from `{saves.low.source}` to `{saves.high.source}`"
        )
    for dialect, settings in fix.patch.items():
        shown = ", ".join(
            f"{key}: {value if isinstance(value, str) else json.dumps(value)}"
            for key, value in settings.items()
        )
        yield f"  - {dialect}: `{shown}`"
    if fix.advice:
        yield f"  - {fix.advice}"
    for caution in fix.cautions:
        yield f"  - mind: {caution}"
