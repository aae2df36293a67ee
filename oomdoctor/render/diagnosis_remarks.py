"""The end of a diagnosis's page: what else was seen, disagreements, open rules, all facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.reason.narrate import print_fact
from oomdoctor.render.diagnosis_answer import quoted
from oomdoctor.render.page import Fold, Point, Section, Table
from oomdoctor.render.parts.causes import SEVERITIES
from oomdoctor.render.parts.remarks import printed
from oomdoctor.render.words import place, says

if TYPE_CHECKING:
    from oomdoctor.model.core import Fact
    from oomdoctor.model.plan import Diagnosis


def remark_sections(diagnosis: Diagnosis) -> tuple[Section, ...]:
    """Return the sections that have something to say."""
    open_rules = tuple(
        Point("•", f"{one.code} needs {', '.join(one.needs)}") for one in diagnosis.not_evaluated
    )
    conflicts = tuple(
        Point(
            "!", f"{one.key}: {print_fact(one.kept)} was taken, {print_fact(one.dropped)} was not"
        )
        for one in diagnosis.conflicts
    )
    faults = tuple(Point("!", f"{one.code}: {one.message}") for one in diagnosis.faults)
    sections = (
        _side(diagnosis),
        _points("Sources that disagree", conflicts),
        _points("Rules that could not be used", faults),
        _facts(diagnosis),
        _points("Not evaluated, for want of facts", open_rules, folded=True),
    )
    return tuple(one for one in sections if one is not None)


def _points(title: str, points: tuple[Point, ...], *, folded: bool = False) -> Section | None:
    return Section(title=title, points=points, folded=folded) if points else None


def _side(diagnosis: Diagnosis) -> Section | None:
    folds = tuple(
        Fold(
            title=says(one),
            badge=one.severity.value,
            tag=one.code,
            role=SEVERITIES[one.severity.value],
            quotes=quoted(one.quotes),
        )
        for one in diagnosis.side_findings
    )
    return Section(title="Also worth knowing", folds=folds) if folds else None


def _facts(diagnosis: Diagnosis) -> Section | None:
    """Return every fact that was read, with where it comes from."""
    if not diagnosis.facts:
        return None
    rows = tuple(
        (key, printed(fact), fact.origin.value, _source(fact))
        for key, fact in sorted(diagnosis.facts.items())
    )
    return Section(
        title="Facts",
        table=Table(
            caption="What the inputs say, and what follows from it",
            headers=("fact", "value", "is", "where"),
            rows=rows,
        ),
        folded=True,
    )


def _source(fact: Fact) -> str:
    return fact.source or (place(fact.quotes[0]) if fact.quotes else "")
