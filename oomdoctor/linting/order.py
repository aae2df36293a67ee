"""The order in which findings are shown, and how many there are of each severity."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.model.enums import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.lint import LintFinding

SEVEREST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def in_order(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """Return findings as a reader goes through a file; those without a line come last."""
    return sorted(findings, key=_place)


def _place(finding: LintFinding) -> tuple[bool, int, int, int, str]:
    rank = SEVEREST_FIRST.index(finding.severity)
    return (finding.line is None, finding.line or 0, finding.column or 0, rank, finding.code)


def counts(findings: Iterable[LintFinding]) -> dict[Severity, int]:
    """Return how many findings there are of each severity, the severest first."""
    found = Counter(finding.severity for finding in findings)
    return {severity: found[severity] for severity in SEVEREST_FIRST}
