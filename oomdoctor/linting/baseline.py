"""A baseline: findings that are known and accepted, so that only new ones are told.

Sample:

    {"schema_version": 1,
     "findings": {"0f6e...": {"code": "KEY3001", "count": 1, "path": "train.yaml",
                              "rule": "eval-strategy", "subject": "evaluation_strategy"}}}

A finding is known by its fingerprint, as many times as it was there.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.linting.fingerprint import numbered, subject
from oomdoctor.linting.places import stable
from oomdoctor.model.lint import Suppressed
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.model.lint import FileReport, LintFinding, LintReport

SCHEMA_VERSION = 1
HOW = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A known finding: how often it was there, and in words what it was."""

    count: int
    code: str = ""
    rule: str = ""
    path: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Known findings by fingerprint, and the file that they were read from."""

    path: str
    entries: Mapping[str, Entry]


def read(path: str) -> Baseline:
    """Read a baseline; a file that is none is an InputError."""
    try:
        with open(path, encoding="utf-8") as file:
            entries = _entries(json.load(file))
    except OSError as error:
        raise InputError(
            f"cannot read the baseline: {error.strerror}",
            location=Location(path=path),
            hint="`--write-baseline` writes one",
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            "this is no baseline of oomdoctor",
            location=Location(path=path),
            hint="`--write-baseline` writes it anew",
        ) from error
    return Baseline(path=path, entries=entries)


def is_there(path: str) -> bool:
    """Say whether a file of this name exists."""
    return os.path.exists(path)


def check_target(path: str) -> None:
    """Refuse to write a baseline over a file that is something else."""
    try:
        if os.path.getsize(path):
            read(path)
    except FileNotFoundError:
        return
    except InputError as error:
        raise InputError(
            "this file is no baseline of oomdoctor: it is not overwritten",
            location=Location(path=path),
            hint="choose another name",
        ) from error


def _entries(whole: Mapping[str, object]) -> dict[str, Entry]:
    if whole["schema_version"] != SCHEMA_VERSION:
        raise ValueError(whole["schema_version"])
    findings = whole["findings"]
    if not isinstance(findings, dict):
        raise TypeError(findings)
    return {
        str(mark): Entry(
            count=int(one["count"]),
            code=str(one.get("code", "")),
            rule=str(one.get("rule", "")),
            path=str(one.get("path", "")),
            subject=str(one.get("subject", "")),
        )
        for mark, one in findings.items()
    }


def text_of(report: LintReport, *, root: str) -> str:
    """Return the baseline of a report: what stands, and what a baseline already held back."""
    entries: dict[str, dict[str, object]] = {}
    for file in report.files:
        for finding, mark, number in numbered(file, _standing(file), root=root):
            entries[mark] = {
                "code": finding.code,
                "count": number,
                "path": stable(finding.path or file.path, root),
                "rule": finding.rule,
                "subject": subject(finding),
            }
    whole = {"schema_version": SCHEMA_VERSION, "findings": entries}
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def _standing(file: FileReport) -> Iterator[LintFinding]:
    yield from file.findings
    yield from (one.finding for one in file.suppressed if one.how == HOW)


def applied(report: LintReport, baseline: Baseline, *, root: str) -> LintReport:
    """Hold back the findings that the baseline knows; note what it knows that is gone."""
    seen: dict[str, list[tuple[int | None, int | None]]] = {}
    jobs = []
    for job in report.jobs:
        files = tuple(_without_known(file, baseline, root, seen) for file in job.files)
        jobs.append(replace(job, files=files))
    read_files = {stable(file.path, root) for file in report.files}
    gone = sum(
        max(entry.count - len(seen.get(mark, ())), 0)
        for mark, entry in baseline.entries.items()
        if entry.path in read_files
    )
    notes = report.notes
    if gone:
        words = "finding is" if gone == 1 else "findings are"
        hint = "`--write-baseline` writes it anew"
        notes = (*notes, f"{baseline.path}: {gone} known {words} gone: {hint}")
    return replace(report, jobs=tuple(jobs), notes=notes)


def _without_known(
    file: FileReport,
    baseline: Baseline,
    root: str,
    seen: dict[str, list[tuple[int | None, int | None]]],
) -> FileReport:
    """Hold back what is known; `seen` are the places of each, as a file may be in two jobs."""
    kept: list[LintFinding] = []
    held: list[Suppressed] = []
    for finding, mark, _ in numbered(file, file.findings, root=root):
        entry = baseline.entries.get(mark)
        places = seen.setdefault(mark, [])
        if (finding.line, finding.column) not in places:
            places.append((finding.line, finding.column))
        if entry is None or places.index((finding.line, finding.column)) >= entry.count:
            kept.append(finding)
        else:
            reason = f"known: stands in {baseline.path}"
            held.append(Suppressed(finding=finding, how=HOW, reason=reason))
    if not held:
        return file
    return replace(file, findings=tuple(kept), suppressed=(*file.suppressed, *held))
