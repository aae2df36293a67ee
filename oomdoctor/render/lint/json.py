"""A lint report as JSON: the contract for scripts (sorted keys, bytes as int, schema version 1).

Every key below is always there; null or an empty list says that nothing is known.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.linting.fingerprint import fingerprint
from oomdoctor.linting.order import counts, in_order
from oomdoctor.render.json import (
    SCHEMA_VERSION,
    Json,
    conflict,
    quotes,
    understood_row,
)
from oomdoctor.render.json_advice import prescription
from oomdoctor.render.lint.words import dialect_name

if TYPE_CHECKING:
    from oomdoctor.model.lint import FileReport, JobReport, LintFinding, LintReport


def to_json(report: LintReport, *, root: str) -> str:
    """Return the whole report as indented JSON that any stream can carry (ASCII only)."""
    whole = as_dict(report, root=root)
    return json.dumps(whole, indent=2, sort_keys=True, allow_nan=False) + "\n"


def to_json_lines(report: LintReport, *, root: str) -> str:
    """Return one line of JSON per finding that is not held back."""
    rows = [
        {**as_finding(finding, file, root=root), "dialect": dialect_name(file.dialect)}
        for file in report.files
        for finding in in_order(file.findings)
    ]
    return "".join(json.dumps(row, sort_keys=True, allow_nan=False) + "\n" for row in rows)


def as_dict(report: LintReport, *, root: str) -> dict[str, Json]:
    """Return the whole report as plain dictionaries and lists."""
    return {
        "schema_version": SCHEMA_VERSION,
        "oomdoctor_version": __version__,
        "files": [_file(file, root) for file in report.files],
        "jobs": [_job(job) for job in report.jobs],
        "counts": {severity.value: count for severity, count in counts(report.findings).items()},
        "faults": [{"code": one.code, "message": one.message} for one in report.faults],
        "notes": list(report.notes),
    }


def _file(file: FileReport, root: str) -> Json:
    return {
        "path": file.path,
        "dialect": dialect_name(file.dialect),
        "findings": [as_finding(one, file, root=root) for one in in_order(file.findings)],
        "suppressed": [
            {
                "finding": as_finding(one.finding, file, root=root),
                "how": one.how,
                "reason": one.reason,
            }
            for one in file.suppressed
        ],
        "notes": list(file.notes),
    }


def as_finding(finding: LintFinding, file: FileReport, *, root: str) -> dict[str, Json]:
    """Return a finding as plain values."""
    return {
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "title": finding.title,
        "message": finding.message,
        "category": finding.category,
        "maturity": finding.maturity.value,
        "path": finding.path or file.path,
        "line": finding.line,
        "column": finding.column,
        "end_column": finding.end_column,
        "key": finding.key,
        "fingerprint": fingerprint(finding, path=file.path, root=root),
        "source_line": finding.source_line,
        "quotes": quotes(finding.quotes),
        "fixes": [prescription(one) for one in finding.fixes],
        "assumed": list(finding.assumed),
        "breaks": finding.breaks,
        "basis": finding.basis,
        "url": finding.url,
    }


def _job(job: JobReport) -> Json:
    return {
        "files": [file.path for file in job.files],
        "understood": [understood_row(row) for row in job.understood],
        "not_evaluated": [
            {"code": one.code, "needs": list(one.needs)} for one in job.not_evaluated
        ],
        "conflicts": [conflict(one) for one in job.conflicts],
    }
