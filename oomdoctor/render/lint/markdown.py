"""A lint report as Markdown for a comment or a job's summary.

Whatever came from an input stands in code or is escaped: it can neither mention people nor close
a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.linting.order import in_order
from oomdoctor.model.enums import Severity
from oomdoctor.render.escape import code_block, code_span, markdown
from oomdoctor.render.lint.words import (
    best_fact,
    dialect_name,
    fix_summary,
    number,
    place,
    price,
    remarks,
    summary,
)
from oomdoctor.render.markdown import details
from oomdoctor.render.words import SAFETY, patch_text, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.lint import FileReport, JobReport, LintFinding, LintReport, UnderstoodRow
    from oomdoctor.model.plan import Patch, Prescription

SIGNS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.INFO: "💡"}


def to_markdown(report: LintReport) -> str:
    """Return the whole report as a Markdown document."""
    ends = [summary(report), fix_summary(report)]
    parts = [
        f"**oomdoctor lint: {markdown('; '.join(text for text in ends if text))}**",
        *(part for file in report.files for part in _file(file)),
        *(part for job in report.jobs for part in _understood(job)),
        *_open(report.jobs),
        *_notes(report),
        f"<sub>oomdoctor {__version__}</sub>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _file(file: FileReport) -> list[str]:
    if not file.findings:
        return []
    title = f"### {code_span(file.path)} ({dialect_name(file.dialect) or 'not recognised'})"
    return [title, *(part for one in in_order(file.findings) for part in _finding(one, file))]


def _finding(finding: LintFinding, file: FileReport) -> list[str]:
    where = place(finding, file.path)
    code = f"[{finding.code}]({finding.url})" if _is_link(finding.url) else finding.code
    head = (
        f"{SIGNS[finding.severity]} **{finding.severity.value}** {code_span(where)} {code} "
        f"{code_span(finding.rule)}: {markdown(sentence(finding.message))}"
    )
    rest = [f"- {markdown(text)}" for text in remarks(finding)]
    line = finding.source_line
    shown = [code_block(line.strip())] if line and line.strip() else []
    return [head, *shown, "\n".join(rest), *(part for one in finding.fixes for part in _fix(one))]


def _is_link(url: str | None) -> bool:
    return url is not None and url.startswith("https://") and not set(url) & set(" ()<>[]\n")


def _fix(one: Prescription) -> list[str]:
    costs = price(one)
    body = [
        markdown(sentence(one.advice)) if one.advice else "",
        *(_patch(patch) for patch in one.patches),
        "\n".join(f"- Caution: {markdown(sentence(text))}" for text in one.cautions),
    ]
    words = f"Fix: {one.title} ({'; '.join(filter(None, [SAFETY[one.safety.value], costs]))})"
    return details(words, [part for part in body if part]) or [markdown(words)]


def _patch(patch: Patch) -> str:
    text, language = patch_text(patch)
    return code_block(text, language=language)


def _understood(job: JobReport) -> list[str]:
    return understood_table(job.understood, [file.path for file in job.files])


def understood_table(rows: Sequence[UnderstoodRow], files: Sequence[str]) -> list[str]:
    """Return the job as understood as a folded table; nothing where it was not understood."""
    if not rows:
        return []
    head = ["| what | is | how it is known |", "|---|---|---|"]
    table = "\n".join([*head, *(_row(row) for row in rows)])
    return details(f"The job as understood: {', '.join(files)}", [table])


def _row(row: UnderstoodRow) -> str:
    known = row.origin.value if row.source is None else f"{row.origin.value}: {row.source}"
    return f"| {markdown(row.name)} | {markdown(row.text)} | {markdown(known)} |"


def _open(jobs: tuple[JobReport, ...]) -> list[str]:
    best = best_fact(jobs)
    if best is None:
        return []
    key, alone, count = best
    silent = {one.code: one.needs for job in jobs for one in job.not_evaluated}
    rows = [
        f"- {code} needs {', '.join(code_span(need) for need in needs)}"
        for code, needs in sorted(silent.items())
    ]
    return details(
        f"{number(count, 'rule', 'rules')} could not be judged;"
        f" {key} would help most ({alone} need it alone)",
        ["\n".join(rows)],
    )


def _notes(report: LintReport) -> list[str]:
    notes = [*report.notes, *(note for file in report.files for note in file.notes)]
    notes += [f"{one.code} could not be used: {one.message}" for one in report.faults]
    return details("Notes", ["\n".join(f"- {markdown(note)}" for note in notes)] if notes else [])
