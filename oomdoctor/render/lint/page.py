"""A lint report laid out as a page: the findings of each file with their patches, then the jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.linting.order import counts, in_order
from oomdoctor.render.diagnosis_answer import patch_code
from oomdoctor.render.lint.words import (
    ONE_AND_MANY,
    best_fact,
    dialect_name,
    fix_summary,
    number,
    place,
    price,
    remarks,
    summary,
)
from oomdoctor.render.page import Figure, Fold, Page, Point, Quoted, Section
from oomdoctor.render.parts.causes import SEVERITIES
from oomdoctor.render.understood_page import understood_sections
from oomdoctor.render.words import SAFETY, sentence

if TYPE_CHECKING:
    from oomdoctor.model.lint import FileReport, JobReport, LintFinding, LintReport
    from oomdoctor.model.plan import Prescription

OPEN_FINDINGS = 3


def lint_page(report: LintReport) -> Page:
    """Return the page of a report."""
    found = counts(report.findings)
    worst = next((severity for severity, count in found.items() if count), None)
    said = fix_summary(report)
    sections = [
        *(_file(file) for file in report.files if file.findings),
        *(one for job in report.jobs for one in _understood(job)),
        *_open(report.jobs),
    ]
    notes = [*report.notes, *(note for file in report.files for note in file.notes)]
    notes += [f"{one.code} could not be used: {one.message}" for one in report.faults]
    return Page(
        title=f"oomdoctor lint: {summary(report)}",
        lead=(f"{said[:1].upper()}{said[1:]}.",) if said else (),
        figures=tuple(
            Figure(ONE_AND_MANY[severity][1], str(count)) for severity, count in found.items()
        ),
        sections=tuple(sections),
        notes=tuple(notes),
        role="good" if worst is None else SEVERITIES[worst.value],
        badges=("nothing found" if worst is None else f"{ONE_AND_MANY[worst][1]} found",),
    )


def _file(file: FileReport) -> Section:
    name = dialect_name(file.dialect) or "not recognised"
    held = len(file.suppressed)
    return Section(
        title=file.path,
        sentences=(f"Read as {name}." + (f" {held} held back." if held else ""),),
        folds=tuple(
            _finding(one, file, opened=at < OPEN_FINDINGS)
            for at, one in enumerate(in_order(file.findings))
        ),
    )


def _finding(finding: LintFinding, file: FileReport, *, opened: bool) -> Fold:
    where = place(finding, file.path)
    line = (finding.source_line or "").strip()
    return Fold(
        title=sentence(finding.message),
        badge=finding.severity.value,
        tag=f"{where} {finding.code} {finding.rule}",
        role=SEVERITIES[finding.severity.value],
        points=tuple(Point("•", text) for text in remarks(finding)),
        quotes=(Quoted(where, line),) if line else (),
        contrary=tuple(point for one in finding.fixes for point in _fix(one)),
        codes=tuple(
            patch_code(patch)._replace(title=sentence(one.title))
            for one in finding.fixes
            for patch in one.patches
        ),
        opened=opened,
    )


def _fix(one: Prescription) -> list[Point]:
    """Return what a fix does and costs, and what it warns of."""
    words = "; ".join(filter(None, [SAFETY[one.safety.value], price(one)]))
    points = [Point("+", f"Fix: {one.title} ({words})")]
    points += [Point("•", sentence(one.advice))] if one.advice else []
    return points + [Point("!", f"caution: {sentence(text)}") for text in one.cautions]


def _understood(job: JobReport) -> tuple[Section, ...]:
    return understood_sections(job.understood, [file.path for file in job.files])


def _open(jobs: tuple[JobReport, ...]) -> list[Section]:
    best = best_fact(jobs)
    if best is None:
        return []
    key, alone, count = best
    silent = {one.code: one.needs for job in jobs for one in job.not_evaluated}
    rules = number(count, "rule", "rules")
    return [
        Section(
            title="Rules that could not be judged",
            sentences=(f"{rules}; {key} would help most ({alone} need it alone).",),
            points=tuple(
                Point("•", f"{code} needs {', '.join(needs)}")
                for code, needs in sorted(silent.items())
            ),
            folded=True,
        )
    ]
