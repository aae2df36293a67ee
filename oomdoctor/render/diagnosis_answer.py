"""Sections of a diagnosis that answer: causes with their evidence, fixes, measurements, proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.proofs import proofs_of
from oomdoctor.reason.narrate import against
from oomdoctor.render.page import Code, Fold, Point, Quoted, Section
from oomdoctor.render.parts import proofs
from oomdoctor.render.parts.causes import SIGNS
from oomdoctor.render.parts.next_steps import is_typed, step_price
from oomdoctor.render.words import (
    SAFETY,
    TELLING_NATS,
    between_words,
    distinct,
    patch_text,
    percent,
    place,
    price_words,
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
    from oomdoctor.render.view import View


def quoted(quotes: Sequence[Quote]) -> tuple[Quoted, ...]:
    """Return quotes as a page shows them, each line once."""
    return tuple(Quoted(place(one), one.text.strip()) for one in distinct(quotes))


def cause_section(diagnosis: Diagnosis, view: View) -> Section | None:
    """Return the ranked causes, each with its evidence; the leading one is open."""
    if not diagnosis.causes:
        return None
    probabilities, other = shares(diagnosis.causes)
    several = len(diagnosis.causes) > 1
    return Section(
        title="Causes, most probable first" if several else "Cause",
        sentences=(f"Something else: {percent(other)}.",) if other > 0 else (),
        folds=tuple(
            _cause(one, probabilities[rank], view, first=rank == 0)
            for rank, one in enumerate(diagnosis.causes)
        ),
    )


def _cause(finding: Finding, probability: float, view: View, *, first: bool) -> Fold:
    points = [Point("+", reason) for reason in reasons(finding)]
    if finding.explains_bytes is not None:
        points.append(Point("=", f"explains {format_size(finding.explains_bytes)}"))
    opposed = against(finding, least=TELLING_NATS)
    contrary = [Point("-", f"speaks against it: {one}") for one in opposed]
    contrary += _names("not known", finding.missing) + _names("assumed", finding.assumed)
    if view.explain:
        contrary += [
            Point(SIGNS[one.verdict.truth], f"{one.nats:+.2f} nats: {one.label}")
            for one in finding.weights
        ]
    return Fold(
        title=says(finding),
        badge=percent(probability),
        tag=f"{finding.cause}, {finding.code}",
        role="bad" if first else "none",
        share=probability,
        points=tuple(points),
        quotes=quoted(finding.quotes),
        contrary=tuple(contrary),
        contrary_quotes=quoted(finding.against) if opposed else (),
        opened=first,
    )


def _names(label: str, names: Sequence[str]) -> list[Point]:
    return [Point("?", f"{label}: {', '.join(names)}")] if names else []


def fix_section(diagnosis: Diagnosis, view: View) -> Section | None:
    """Return the prescriptions in their order, best first; the first few are open."""
    if not diagnosis.prescriptions:
        return None
    leading = diagnosis.causes[0].cause if diagnosis.causes else None
    return Section(
        title="What to change, best first",
        folds=tuple(
            fix_fold(one, at + 1, leading=leading, opened=at < view.fixes // 2)
            for at, one in enumerate(diagnosis.prescriptions)
        ),
        points=tuple(Point("•", text) for text in diagnosis.suppressed),
    )


def fix_fold(
    one: Prescription, number: int, *, leading: str | None = None, opened: bool = False
) -> Fold:
    """Return a prescription with its patches."""
    aimed = "" if one.cause == leading or leading is None else f", if it is {one.cause}"
    saving = saving_words(one.saving) if one.saving else "saving not known"
    return Fold(
        title=sentence(one.title),
        badge=f"{number}.",
        tag=f"{saving}; {price_words(one)}; {SAFETY[one.safety.value]}{aimed} [{one.fix_id}]",
        sentences=(sentence(one.advice),) if one.advice else (),
        codes=tuple(patch_code(patch) for patch in one.patches),
        contrary=tuple(Point("!", f"caution: {sentence(text)}") for text in one.cautions),
        opened=opened,
    )


def patch_code(patch: Patch) -> Code:
    """Return a patch as it is copied: a diff word for word, or the settings as they are typed."""
    text, language = patch_text(patch)
    return Code(text, language, patch.file or ("patch" if patch.diff else patch.dialect))


def next_section(diagnosis: Diagnosis) -> Section | None:
    """Return the next measurements, the most telling per second first."""
    steps = diagnosis.next_measurements
    if not steps:
        return None
    return Section(
        title="What would make it surer" if diagnosis.conclusive else "What to measure next",
        folds=tuple(
            _step(one, opened=at == 0 and not diagnosis.conclusive) for at, one in enumerate(steps)
        ),
    )


def _step(step: Measurement, *, opened: bool) -> Fold:
    lines = step.command.split("\n")
    typed = [text for text in lines if is_typed(text)]
    between = between_words(step.decides_between) if step.decides_between else ""
    return Fold(
        title=step.fact,
        tag="; ".join(filter(None, [step_price(step), between])),
        sentences=tuple(text for text in lines if not is_typed(text)),
        codes=(Code("\n".join(typed), "sh"),) if typed else (),
        points=tuple(Point("•", meaning) for meaning in step.meanings),
        opened=opened,
    )


def proof_section(diagnosis: Diagnosis) -> Section | None:
    """Return the experiments for the leading causes."""
    found = proofs_of(diagnosis)
    if not found:
        return None
    return Section(
        title=proofs.TITLE,
        sentences=(*map(proofs.meaning, found), *proofs.notes_of(found)),
        codes=tuple(Code(one.command, "sh", one.cause) for one in found),
    )
