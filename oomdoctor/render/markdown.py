"""A diagnosis as Markdown for an issue: the answer first, the rest in collapsible parts.

Whatever came from an input stands in code or is escaped: it can neither mention people nor close
a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.experiments.proofs import proofs_of
from oomdoctor.reason.narrate import against, print_fact
from oomdoctor.render.escape import code_block, code_span, html, markdown
from oomdoctor.render.parts import proofs
from oomdoctor.render.view import View
from oomdoctor.render.words import (
    SAFETY,
    TELLING_NATS,
    answer_words,
    distinct,
    opening_quotes,
    owner_words,
    patch_text,
    percent,
    place,
    price_words,
    rank_state,
    rank_words,
    reasons,
    saving_words,
    says,
    sentence,
    shares,
)
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import Finding, Quote
    from oomdoctor.model.plan import Diagnosis, Measurement, Patch, Prescription


def to_markdown(diagnosis: Diagnosis, *, view: View | None = None) -> str:
    """Return the whole diagnosis as a Markdown document."""
    shown = view or View()
    parts = [
        *_verdict(diagnosis),
        *_causes(diagnosis, shown),
        *_fixes(diagnosis, shown),
        *_next(diagnosis.next_measurements),
        *_proofs(diagnosis),
        *_balance(diagnosis),
        *_job(diagnosis),
        *_side(diagnosis.side_findings),
        *_remarks(diagnosis),
        f"<sub>oomdoctor {__version__}</sub>",
    ]
    if shown.next_only:
        parts = _next(diagnosis.next_measurements) or ["No measurement would change the answer."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _job(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.understood:
        return []
    from oomdoctor.render.lint.markdown import understood_table

    return understood_table(diagnosis.understood, diagnosis.job_files)


def details(summary: str, parts: Sequence[str]) -> list[str]:
    """Fold parts under a summary line; nothing where there are none."""
    if not parts:
        return []
    return [f"<details><summary>{html(summary)}</summary>", *parts, "</details>"]


def _verdict(diagnosis: Diagnosis) -> list[str]:
    sure = ["conclusive"] if diagnosis.conclusive else []
    return [
        f"**{markdown(sentence(diagnosis.headline))}**",
        f"Answer: {', '.join([*answer_words(diagnosis)[1], *sure])}.",
        *_quotes(opening_quotes(diagnosis)),
    ]


def _quotes(quotes: Sequence[Quote]) -> list[str]:
    texts = [f"{place(one)}: {one.text.strip()}" for one in distinct(quotes)]
    return [code_block("\n".join(" ".join(text.split("\n")) for text in texts))] if texts else []


def _causes(diagnosis: Diagnosis, view: View) -> list[str]:
    if not diagnosis.causes:
        return []
    probabilities, other = shares(diagnosis.causes)
    parts = ["### Causes"]
    for at, finding in enumerate(diagnosis.causes):
        head = f"{percent(probabilities[at])} {says(finding)}"
        label = f"{code_span(finding.cause)} ({code_span(finding.code)})"
        body = _reasons(finding)
        if at == 0:
            parts += [f"**{markdown(head)}** {label}", *body]
        elif at < view.top or view.explain:
            parts += details(f"{head} {finding.cause} ({finding.code})", body)
        else:
            parts.append(f"{markdown(head)} {label}")
    return [*parts, f"Something else: {percent(other)}"]


def _reasons(finding: Finding) -> list[str]:
    lines = [f"- {markdown(reason)}" for reason in reasons(finding)]
    if finding.explains_bytes is not None:
        lines.append(f"- explains {format_size(finding.explains_bytes)}")
    opposed = against(finding, least=TELLING_NATS)
    contrary = [f"- against: {markdown(one)}" for one in opposed]
    contrary += _names("not known", finding.missing) + _names("assumed", finding.assumed)
    parts = ["\n".join(lines), *_quotes(finding.quotes), "\n".join(contrary)]
    if opposed and finding.against:
        parts += ["Speaks against it:", *_quotes(finding.against)]
    return [part for part in parts if part]


def _names(label: str, names: Sequence[str]) -> list[str]:
    return [f"- {label}: {', '.join(code_span(name) for name in names)}"] if names else []


def _fixes(diagnosis: Diagnosis, view: View) -> list[str]:
    if not diagnosis.prescriptions:
        return []
    parts = ["### What to change"]
    for at, one in enumerate(diagnosis.prescriptions):
        if at < view.fixes:
            parts += [f"**{at + 1}. {markdown(sentence(one.title))}**", *_fix(one)]
        else:
            parts += details(f"{at + 1}. {one.title}", _fix(one))
    return [*parts, "\n".join(f"- {markdown(text)}" for text in diagnosis.suppressed)]


def _fix(one: Prescription) -> list[str]:
    saving = saving_words(one.saving) if one.saving else "saving not known"
    price = f"{saving}; {price_words(one)}; {SAFETY[one.safety.value]}"
    lines = [f"For {code_span(one.cause)}: {markdown(price)}."]
    if one.advice:
        lines.append(markdown(sentence(one.advice)))
    cautions = [f"- Caution: {markdown(sentence(text))}" for text in one.cautions]
    return ["\n".join(lines), *(_patch(patch) for patch in one.patches), "\n".join(cautions)]


def _patch(patch: Patch) -> str:
    text, language = patch_text(patch)
    return code_block(text, language=language)


def _next(steps: Sequence[Measurement]) -> list[str]:
    parts = ["### What to measure next"] if steps else []
    for step in steps:
        between = ", ".join(code_span(name) for name in step.decides_between)
        parts.append(f"{code_span(step.fact)}{': decides between ' if between else ''}{between}")
        parts.append(code_block(step.command, language="sh"))
        parts.append("\n".join(f"- {markdown(meaning)}" for meaning in step.meanings))
    return parts


def _proofs(diagnosis: Diagnosis) -> list[str]:
    found = proofs_of(diagnosis)
    parts = [f"### {proofs.TITLE}"] if found else []
    for one in found:
        parts += [markdown(proofs.meaning(one)), code_block(one.command, language="sh")]
    return [*parts, *(markdown(note) for note in proofs.notes_of(found))]


def _balance(diagnosis: Diagnosis) -> list[str]:
    ledger = diagnosis.ledger
    if ledger is None or not ledger.entries:
        return []
    rows = [
        f"| {markdown(owner_words(one.owner))} | {format_size(one.bytes)} | {one.origin.value} |"
        for one in ledger.entries
    ]
    whole = "" if ledger.capacity_bytes is None else f" of {format_size(ledger.capacity_bytes)}"
    table = "\n".join(["| owner | size | origin |", "|---|---|---|", *rows])
    notes = "\n".join(f"- {markdown(note)}" for note in ledger.notes)
    return details(f"Balance sheet{whole}", [table, *([notes] if notes else [])])


def _side(findings: Sequence[Finding]) -> list[str]:
    lines = [f"- {one.severity.value}: {markdown(says(one))} ({one.code})" for one in findings]
    return ["### Also worth knowing", "\n".join(lines)] if lines else []


def _remarks(diagnosis: Diagnosis) -> list[str]:
    conflicts = [
        f"- {code_span(one.key)}: {markdown(print_fact(one.kept))} was taken,"
        f" {markdown(print_fact(one.dropped))} was not"
        for one in diagnosis.conflicts
    ]
    open_rules = [
        f"- {one.code} needs {', '.join(code_span(need) for need in one.needs)}"
        for one in diagnosis.not_evaluated
    ]
    faults = [f"- {one.code}: {markdown(one.message)}" for one in diagnosis.faults]
    notes = [f"- {markdown(note)}" for note in diagnosis.notes]
    ranks = [
        f"- {rank_words(one)}: {markdown(rank_state(one))}: {markdown(one.headline)}"
        for one in diagnosis.ranks
        if len(diagnosis.ranks) > 1
    ]
    folded: list[str] = []
    for title, lines in (
        ("Ranks", ranks),
        ("Sources that disagree", conflicts),
        ("Not evaluated, for want of facts", open_rules),
        ("Rules that could not be used", faults),
        ("Notes", notes),
    ):
        folded += details(title, ["\n".join(lines)] if lines else [])
    return folded
