"""A lint report as a page of text: findings per file, the job as understood, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.registry import specs
from oomdoctor.linting.order import in_order
from oomdoctor.model.enums import Severity
from oomdoctor.render.layout import BLANK, Line, Span, flow, line
from oomdoctor.render.lint.parts import finding_lines, head
from oomdoctor.render.lint.understood import understood
from oomdoctor.render.lint.view import LintView
from oomdoctor.render.lint.words import best_fact, dialect_name, fix_summary, number, summary
from oomdoctor.render.parts.pieces import INDENT, heading, paragraph, safe
from oomdoctor.render.parts.remarks import printed
from oomdoctor.render.text import paint
from oomdoctor.render.words import place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import Fact
    from oomdoctor.model.lint import FileReport, JobReport, LintReport
    from oomdoctor.render.theme import Theme

MOST_UNREAD = 3
# what the command line has an option of its own for
OPTIONS = {"gpu.name": '--gpu "RTX 4090"', "gpu.total": '--gpu "RTX 4090"', "gpu.count": "--gpus 4"}
VERSION = "env."


def render(report: LintReport, theme: Theme, view: LintView | None = None) -> str:
    """Return the page; the words are the same with and without colour."""
    return paint(page(report, theme, view or LintView()), theme)


def page(report: LintReport, theme: Theme, view: LintView) -> list[Line]:
    """Lay the parts that have something to say out, one blank line between them."""
    if view.is_quiet:
        return [
            line(*head(finding, file, theme))
            for file in report.files
            for finding in in_order(file.findings)
        ]
    parts = [part for file in report.files for part in _file(file, theme, view)]
    parts.append(_unread(report, theme, view))
    if len(report.jobs) <= view.jobs or view.is_talkative:
        parts += [understood(job, theme) for job in report.jobs]
    for job in report.jobs:
        parts.append(_conflicts(job, theme))
    parts += [_held(report, theme, view), _open(report.jobs, theme, view)]
    parts += [_faults(report, theme), _notes(report, theme), _summary(report, theme)]
    lines: list[Line] = []
    for part in parts:
        lines += [BLANK, *part] if lines and part else part
    return lines


def _file(file: FileReport, theme: Theme, view: LintView) -> list[list[Line]]:
    """Return one part per finding; of a file without any only where it says something."""
    if not file.findings and file.dialect is not None and view.is_talkative:
        text = f"{file.path}: {dialect_name(file.dialect)}, nothing found"
        return [paragraph(text, theme, first=f"{theme.glyph('none')} ")]
    return [finding_lines(one, file, theme, view) for one in in_order(file.findings)]


def _unread(report: LintReport, theme: Theme, view: LintView) -> list[Line]:
    """Name the files that were not recognised; a folder may hold many."""
    paths = [file.path for file in report.files if file.dialect is None and not file.findings]
    if not paths:
        return []
    shown = paths if view.is_talkative else paths[:MOST_UNREAD]
    more = f" and {len(paths) - len(shown)} more" if len(shown) < len(paths) else ""
    text = f"{', '.join(shown)}{more}: not recognised as a config of a framework that is known here"
    return paragraph(text, theme, first=f"{theme.glyph('open')} ")


def _conflicts(job: JobReport, theme: Theme) -> list[Line]:
    """Return what the files of a job say differently."""
    if not job.conflicts:
        return []
    lines = [heading("Files that disagree")]
    for one in job.conflicts:
        text = f"{one.key}: {_said(one.kept)} was taken, {_said(one.dropped)} was not"
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('aside')} ")
    return lines


def _said(fact: Fact) -> str:
    where = place(fact.quotes[0]) if fact.quotes else fact.source or fact.origin.value
    return f"{printed(fact)} ({where})"


def _held(report: LintReport, theme: Theme, view: LintView) -> list[Line]:
    """Return the findings that are held back, for who wants to see everything."""
    held = [(file, one) for file in report.files for one in file.suppressed]
    if not held or not view.is_talkative:
        return []
    lines = [heading("Held back")]
    for file, one in held:
        reason = f"{one.how}: {one.reason}" if one.reason else one.how
        spans = [*head(one.finding, file, theme), Span(f" ({safe(reason, theme)})", "dim")]
        lines += flow(spans, width=theme.width, first=INDENT, rest=INDENT * 2)
    return lines


def _open(jobs: Sequence[JobReport], theme: Theme, view: LintView) -> list[Line]:
    """Return how many rules could not be judged, and the one fact that would help most."""
    best = best_fact(tuple(jobs))
    if best is None:
        return []
    key, alone, count = best
    spec = specs().get(key)
    doc = f" ({spec.doc.rstrip('.')})" if spec else ""
    needed = f": {number(alone, 'rule needs', 'rules need')} it alone" if alone else ""
    lines = [heading(f"{number(count, 'rule', 'rules')} could not be judged, for want of facts")]
    lines += paragraph(f"{key}{doc} would help most{needed}", theme, first=INDENT)
    lines.append(line(f"{INDENT}give ", Span(_way(key), "command")))
    if view.is_talkative:
        silent = {one.code: one.needs for job in jobs for one in job.not_evaluated}
        for code, needs in sorted(silent.items()):
            lines += paragraph(f"{code} needs {', '.join(needs)}", theme, first=INDENT)
    return lines


def _way(key: str) -> str:
    """Say how a fact is given on the command line."""
    if key in OPTIONS:
        return OPTIONS[key]
    if key.startswith(VERSION):
        return f"--versions {key.removeprefix(VERSION)}==..."
    return f"--fact {key}=..."


def _faults(report: LintReport, theme: Theme) -> list[Line]:
    if not report.faults:
        return []
    lines = [heading("Rules that could not be used")]
    for one in report.faults:
        text = f"{one.code}: {one.message}"
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('aside')} ")
    return lines


def _notes(report: LintReport, theme: Theme) -> list[Line]:
    notes = [*report.notes, *(note for file in report.files for note in file.notes)]
    lines = [heading("Notes")] if notes else []
    for text in notes:
        lines += paragraph(text, theme, first=f"{INDENT}{theme.glyph('dot')} ")
    return lines


def _summary(report: LintReport, theme: Theme) -> list[Line]:
    """Return the last lines: how much was found, and what `--fix` would do."""
    worst = {finding.severity for finding in report.findings}
    role = "none"
    if Severity.ERROR in worst:
        role = "bad"
    elif Severity.WARNING in worst:
        role = "aside"
    lines = flow(
        [Span(safe(summary(report), theme), role)],
        width=theme.width,
        first=f"{theme.glyph(role)} ",
    )
    cures = fix_summary(report)
    return [*lines, *(paragraph(cures, theme, first=INDENT) if cures else [])]
