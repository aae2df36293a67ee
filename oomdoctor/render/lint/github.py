"""A lint report as GitHub's workflow commands, which become annotations of a change.

Sample:

    ::error file=train.yaml,line=3,endLine=3,col=1,endColumn=11,title=COR2001 fp16-and-bf16::...

GitHub shows ten of a kind per step, so the severest come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.linting.order import SEVEREST_FIRST, in_order
from oomdoctor.linting.places import stable
from oomdoctor.model.enums import Severity
from oomdoctor.render.escape import visible
from oomdoctor.render.lint.words import fix_summary, price, remarks, summary
from oomdoctor.render.words import sentence

if TYPE_CHECKING:
    from oomdoctor.model.lint import FileReport, LintFinding, LintReport

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_IN_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTY = (*_IN_DATA, (":", "%3A"), (",", "%2C"))


def to_github(report: LintReport, *, root: str) -> str:
    """Return one command per finding, then the summary."""
    found = [(file, one) for file in report.files for one in in_order(file.findings)]
    found.sort(key=lambda pair: SEVEREST_FIRST.index(pair[1].severity))
    lines = [_command(finding, file, root) for file, finding in found]
    ends = [summary(report), fix_summary(report)]
    return "\n".join([*lines, *(f"oomdoctor: {text}" for text in ends if text)]) + "\n"


def _command(finding: LintFinding, file: FileReport, root: str) -> str:
    properties = {
        "file": stable(finding.path or file.path, root),
        "line": finding.line,
        "endLine": finding.line,
        "col": finding.column if finding.line is not None else None,
        "endColumn": finding.end_column if finding.line is not None else None,
        "title": f"{finding.code} {finding.rule}",
    }
    listed = ",".join(
        f"{name}={_escaped(visible(str(value)), _IN_PROPERTY)}"
        for name, value in properties.items()
        if value is not None
    )
    return f"::{COMMANDS[finding.severity]} {listed}::{_escaped(_message(finding), _IN_DATA)}"


def _message(finding: LintFinding) -> str:
    """Return message, remarks and titles of fixes, each on a line of its own."""
    lines = [sentence(finding.message), *map(sentence, remarks(finding))]
    for fix in finding.fixes:
        costs = price(fix)
        lines.append(f"Fix: {sentence(fix.title)}{f' ({costs})' if costs else ''}")
    return "\n".join(visible(line) for line in lines)


def _escaped(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for sign, code in pairs:
        text = text.replace(sign, code)
    return text
