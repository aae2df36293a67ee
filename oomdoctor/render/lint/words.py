"""Phrases that the formats of a lint report share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.linting.order import counts
from oomdoctor.model.enums import Safety, Severity
from oomdoctor.render.words import NANO, saving_words

if TYPE_CHECKING:
    from oomdoctor.model.lint import JobReport, LintFinding, LintReport
    from oomdoctor.model.plan import Prescription

# our own name of a dialect -> the one that is told
DIALECTS = {"hf_trainer": "hf"}
ONE_AND_MANY = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.INFO: ("remark", "remarks"),
}
HELP = "https://pypi.org/project/oomdoctor/"


def dialect_name(dialect: str | None) -> str | None:
    """Return the name by which a dialect is told."""
    return None if dialect is None else DIALECTS.get(dialect, dialect)


def place(finding: LintFinding, path: str) -> str:
    """Name where a finding stands: `train.yaml:12:3`, or the file where no line says it."""
    parts = [finding.path or path]
    if finding.line is not None:
        parts.append(str(finding.line))
        parts.append(str(finding.column or 1))
    return ":".join(parts)


def remarks(finding: LintFinding) -> list[str]:
    """Return what a finding rests on besides the file: assumptions, and versions."""
    assumed = [f"assumed: {text}" for text in finding.assumed]
    return [*assumed, *([f"versions: {finding.breaks}"] if finding.breaks else [])]


def price(one: Prescription) -> str:
    """Print what a fix saves and costs; nothing where it does neither."""
    parts = [saving_words(one.saving)] if one.saving else []
    if abs(one.time_factor - 1.0) >= NANO:
        parts.append(f"step time x {one.time_factor:.2f}".rstrip("0").rstrip("."))
    if one.quality != "none":
        parts.append(f"result: {one.quality}")
    if one.sufficient is not None:
        parts.append("fits afterwards, as estimated" if one.sufficient else "not enough on its own")
    return ", ".join(parts)


def number(count: int, one: str, many: str) -> str:
    """Print a count with its noun."""
    return f"{count} {one if count == 1 else many}"


def summary(report: LintReport) -> str:
    """Say in a line how much was found in how many files."""
    files = number(len(report.files), "file", "files")
    found = counts(report.findings)
    parts = [number(count, *ONE_AND_MANY[severity]) for severity, count in found.items() if count]
    with_findings = sum(bool(file.findings) for file in report.files)
    where = f"{with_findings} of {files}" if len(report.files) > 1 else files
    text = f"{', '.join(parts)} in {where}" if parts else f"nothing found in {files}"
    unread = sum(file.dialect is None for file in report.files)
    if unread:
        text += f", {unread} not recognised"
    held = sum(len(file.suppressed) for file in report.files)
    return f"{text}; {held} held back" if held else text


def fixable(report: LintReport) -> tuple[int, int]:
    """Return how many findings a safe patch cures, and how many more one that is not safe."""
    safe = unsafe = 0
    for finding in report.findings:
        kinds = {
            one.safety
            for one in finding.fixes
            if any(patch.diff for patch in one.patches) and one.safety is not Safety.NEEDS_CODE
        }
        safe += Safety.SAFE in kinds
        unsafe += bool(kinds) and Safety.SAFE not in kinds
    return safe, unsafe


def fix_summary(report: LintReport) -> str | None:
    """Say what `--fix` would do, or nothing where it could do nothing."""
    safe, unsafe = fixable(report)
    if safe and unsafe:
        return f"--fix cures {safe}, and with --unsafe {unsafe} more"
    if safe:
        return f"--fix cures {safe}"
    return f"--fix --unsafe cures {unsafe}" if unsafe else None


def best_fact(jobs: tuple[JobReport, ...]) -> tuple[str, int, int] | None:
    """Return the fact that would let the most open rules be judged, how many, and how many open.

    A rule that needs this fact alone counts full, one that needs others, too, in part.
    """
    weights: dict[str, float] = {}
    alone: dict[str, int] = {}
    seen = {(one.code, one.needs) for job in jobs for one in job.not_evaluated}
    for _, needs in seen:
        for key in needs:
            weights[key] = weights.get(key, 0.0) + 1 / len(needs)
            alone[key] = alone.get(key, 0) + (len(needs) == 1)
    if not weights:
        return None
    best = max(sorted(weights), key=lambda key: weights[key])
    return best, alone[best], len({code for code, _ in seen})
