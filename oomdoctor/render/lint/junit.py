"""A lint report as JUnit XML, for build servers that show tests.

A file is a suite, a finding in it a case that fails; a remark passes and says what it says; a
finding that is held back is skipped. A file without findings is one case that passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from oomdoctor.linting.order import in_order
from oomdoctor.model.enums import Severity
from oomdoctor.render.escape import visible
from oomdoctor.render.lint.words import dialect_name, place, price, remarks
from oomdoctor.render.words import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.lint import FileReport, LintFinding, LintReport, Suppressed

TIME = 'time="0"'


def to_junit(report: LintReport) -> str:
    """Return the report as an XML document."""
    suites = [line for file in report.files for line in _suite(file)]
    failures = sum(_failures(file) for file in report.files)
    tests = sum(_cases(file) for file in report.files)
    numbers = f'tests="{tests}" failures="{failures}" errors="0" {TIME}'
    head = f'<testsuites name="oomdoctor lint" {numbers}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>", ""])


def _failures(file: FileReport) -> int:
    return sum(one.severity is not Severity.INFO for one in file.findings)


def _cases(file: FileReport) -> int:
    return max(len(file.findings) + len(file.suppressed), 1)


def _suite(file: FileReport) -> Iterator[str]:
    numbers = (
        f'tests="{_cases(file)}" failures="{_failures(file)}" errors="0" '
        f'skipped="{len(file.suppressed)}" {TIME}'
    )
    yield f"  <testsuite name={_attribute(file.path)} {numbers}>"
    yield "    <properties>"
    dialect = dialect_name(file.dialect) or "not recognised"
    yield f'      <property name="dialect" value={_attribute(dialect)}/>'
    yield "    </properties>"
    for finding in in_order(file.findings):
        yield from _case(finding, file)
    for one in file.suppressed:
        yield from _held(one, file)
    if not (file.findings or file.suppressed):
        yield f'    <testcase name="lint" classname={_attribute(file.path)} {TIME}/>'
    if file.notes:
        yield f"    <system-out>{_text(chr(10).join(file.notes))}</system-out>"
    yield "  </testsuite>"


def _case(finding: LintFinding, file: FileReport) -> Iterator[str]:
    body = _text("\n".join(_body(finding, file)))
    yield f"    {_opened(finding, file)}>"
    if finding.severity is Severity.INFO:
        yield f"      <system-out>{body}</system-out>"
    else:
        kind = f'type="{finding.severity.value}" message={_attribute(sentence(finding.message))}'
        yield f"      <failure {kind}>{body}</failure>"
    yield "    </testcase>"


def _held(one: Suppressed, file: FileReport) -> Iterator[str]:
    reason = f"{one.how}: {one.reason}" if one.reason else one.how
    yield f"    {_opened(one.finding, file)}>"
    yield f"      <skipped message={_attribute(reason)}/>"
    yield "    </testcase>"


def _opened(finding: LintFinding, file: FileReport) -> str:
    line = "" if finding.line is None else f" line {finding.line}"
    name = _attribute(f"{finding.code} {finding.rule}{line}")
    return f"<testcase name={name} classname={_attribute(finding.path or file.path)} {TIME}"


def _body(finding: LintFinding, file: FileReport) -> Iterator[str]:
    yield f"{place(finding, file.path)}: {sentence(finding.message)}"
    if finding.source_line is not None:
        yield f"    {finding.source_line.strip()}"
    yield from remarks(finding)
    for fix in finding.fixes:
        costs = price(fix)
        yield f"fix: {sentence(fix.title)}{f' ({costs})' if costs else ''}"
    if finding.url:
        yield finding.url


def _attribute(text: str) -> str:
    return quoteattr(visible(text))


def _text(text: str) -> str:
    return escape("\n".join(visible(line) for line in text.split("\n")))
