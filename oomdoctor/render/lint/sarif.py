"""A lint report as SARIF 2.1.0, for code scanning and editors.

A result carries a fingerprint made of rule, file and setting, so that a line that moves makes no
new alert. Paths are relative to the checkout. Findings that are held back are there, suppressed.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from oomdoctor import __version__
from oomdoctor.linting.fingerprint import numbered
from oomdoctor.linting.order import SEVEREST_FIRST, in_order
from oomdoctor.linting.places import relative
from oomdoctor.model.enums import Severity
from oomdoctor.render.lint.replacements import replacements
from oomdoctor.render.lint.words import HELP, remarks
from oomdoctor.render.words import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.model.core import Quote
    from oomdoctor.model.lint import FileReport, LintFinding, LintReport, Suppressed
    from oomdoctor.model.plan import Patch, Prescription
    from oomdoctor.render.json import Json
    from oomdoctor.rules.shape import Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
BASE = "%SRCROOT%"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
KINDS = {"comment": "inSource"}  # anything else is external


def to_sarif(report: LintReport, *, root: str, rules: Iterable[Rule] = ()) -> str:
    """Return the report as a SARIF log; `rules` tell what a rule's severity is by itself."""
    log = as_log(report, root=root, rules=rules)
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def as_log(report: LintReport, *, root: str, rules: Iterable[Rule] = ()) -> dict[str, Json]:
    """Return the report as a SARIF log of plain values."""
    known = {rule.code: rule for rule in rules}
    descriptors = _rules(report, known)
    order = [str(one["id"]) for one in descriptors]
    results = [result for file in report.files for result in _results(file, root=root, order=order)]
    driver: dict[str, Json] = {
        "name": "oomdoctor",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": HELP,
        "rules": list(descriptors),
    }
    run: dict[str, Json] = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "oomdoctor/lint/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"description": {"text": "The root of the checkout."}}},
        "artifacts": [{"location": _location(file.path, root)} for file in report.files],
        "invocations": [_invocation(report)],
        "results": list(results),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _all(report: LintReport) -> Iterator[LintFinding]:
    for file in report.files:
        yield from in_order(file.findings)
        yield from (one.finding for one in file.suppressed)


def _rules(report: LintReport, known: dict[str, Rule]) -> list[dict[str, Json]]:
    """Describe every rule that has a result, by code."""
    found: dict[str, list[LintFinding]] = {}
    for finding in _all(report):
        found.setdefault(finding.code, []).append(finding)
    return [_rule(found[code], known.get(code)) for code in sorted(found)]


def _rule(findings: list[LintFinding], rule: Rule | None) -> dict[str, Json]:
    first = findings[0]
    severity = min((one.severity for one in findings), key=SEVEREST_FIRST.index)
    described: dict[str, Json] = {
        "id": first.code,
        "name": _camel(first.rule),
        "shortDescription": {"text": _plain(sentence(first.title))},
        "fullDescription": {"text": _plain(_why(first, rule))},
        "defaultConfiguration": {"level": LEVELS[rule.severity if rule else severity]},
        "helpUri": first.url or HELP,
        "help": {"text": f"`oomdoctor explain {first.code}` tells why, and how to cure it."},
        "properties": {
            "tags": [first.category, first.rule],
            "maturity": first.maturity.value,
            "problem.severity": LEVELS[severity].replace("note", "recommendation"),
        },
    }
    return described


def _why(finding: LintFinding, rule: Rule | None) -> str:
    """Return the rule's own words, each paragraph on one line."""
    if rule is None or not rule.why.strip():
        return sentence(finding.title)
    return "\n\n".join(" ".join(part.split()) for part in rule.why.strip().split("\n\n"))


def _camel(name: str) -> str:
    """Return a rule's name as SARIF wants it: `fp16-and-bf16` is `Fp16AndBf16`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("-"))


@cache
def _link() -> re.Pattern[str]:
    return re.compile(r"\[(?=[^\]\[]*\]\()")


@cache
def _placeholder() -> re.Pattern[str]:
    return re.compile(r"\{(\d+)\}")


def _plain(text: str) -> str:
    """Return a message in which nothing of an input is taken for a link or a placeholder."""
    return _placeholder().sub(r"{{\1}}", _link().sub(r"\\[", text))


def _results(file: FileReport, *, root: str, order: list[str]) -> Iterator[dict[str, Json]]:
    held = {id(one.finding): one for one in file.suppressed}
    findings = [*in_order(file.findings), *(one.finding for one in file.suppressed)]
    for finding, mark, number in numbered(file, findings, root=root):
        where = _place(finding, file, root)
        yield {
            "ruleId": finding.code,
            "ruleIndex": order.index(finding.code),
            "level": LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [{"physicalLocation": where}],
            **_related(finding, root),
            "partialFingerprints": {
                "primaryLocationLineHash": f"{mark}:{number}",
                "oomdoctor/v1": mark,
            },
            **_fixes(finding, root),
            "suppressions": _suppressions(held.get(id(finding))),
            "properties": {
                "rule": finding.rule,
                "category": finding.category,
                "key": finding.key,
                "basis": finding.basis,
                "assumed": list(finding.assumed),
            },
        }


def _message(finding: LintFinding) -> str:
    parts = [sentence(finding.message), *(f"({text})" for text in remarks(finding))]
    return _plain(" ".join(parts))


def _place(finding: LintFinding, file: FileReport, root: str) -> dict[str, Json]:
    """Return where a finding stands; one about a setting that is missing is at the first line."""
    region: dict[str, Json] = {"startLine": finding.line or 1}
    if finding.line is not None and finding.column is not None:
        region["startColumn"] = finding.column
        if finding.end_column is not None and finding.end_column > finding.column:
            region["endColumn"] = finding.end_column
    if finding.line is not None and finding.source_line is not None:
        region["snippet"] = {"text": finding.source_line}
    return {"artifactLocation": _location(finding.path or file.path, root), "region": region}


def _location(path: str, root: str) -> dict[str, Json]:
    inside = relative(path, root)
    if inside is not None:
        return {"uri": _quoted(inside), "uriBaseId": BASE}
    shown = path.replace("\\", "/")
    return {"uri": f"file://{_quoted(shown)}" if shown.startswith("/") else _quoted(shown)}


def _quoted(path: str) -> str:
    """Return a path for a URI; the bytes of a name that is no UTF-8 stay what they are."""
    try:
        return quote(path.encode("utf-8", errors="surrogateescape"))
    except UnicodeEncodeError:
        return quote(path, errors="replace")


def _related(finding: LintFinding, root: str) -> dict[str, Json]:
    """Return the other places that make the finding."""
    others = [
        one for one in finding.quotes if (one.artifact, one.line) != (finding.path, finding.line)
    ]
    if not others:
        return {}
    return {"relatedLocations": [_other(at, one, root) for at, one in enumerate(others)]}


def _other(number: int, one: Quote, root: str) -> dict[str, Json]:
    region: dict[str, Json] = {"startLine": one.line}
    if one.end_column is not None and one.end_column > one.column:
        region |= {"startColumn": one.column, "endColumn": one.end_column}
    where: dict[str, Json] = {
        "artifactLocation": _location(one.artifact, root),
        "region": region,
    }
    return {
        "id": number,
        "physicalLocation": where,
        "message": {"text": _plain(one.text.strip() or "here")},
    }


def _fixes(finding: LintFinding, root: str) -> dict[str, Json]:
    """Return the fixes that have a patch of a file, as replacements."""
    fixes = [shown for one in finding.fixes if (shown := _fix(one, root))]
    return {"fixes": list(fixes)} if fixes else {}


def _fix(one: Prescription, root: str) -> dict[str, Json] | None:
    changes = [shown for patch in one.patches if (shown := _change(patch, root))]
    if not changes:
        return None
    return {"description": {"text": _plain(sentence(one.title))}, "artifactChanges": list(changes)}


def _change(patch: Patch, root: str) -> dict[str, Json] | None:
    found = replacements(patch.diff) if patch.diff and patch.file else ()
    if not found or patch.file is None:
        return None
    return {
        "artifactLocation": _location(patch.file, root),
        "replacements": [
            {
                "deletedRegion": {
                    "startLine": one.line,
                    "startColumn": one.column,
                    "endLine": one.end_line,
                    "endColumn": one.end_column,
                },
                "insertedContent": {"text": one.text},
            }
            for one in found
        ],
    }


def _suppressions(held: Suppressed | None) -> Json:
    """Return how a result is held back; an empty list says that it is not."""
    if held is None:
        return []
    return [
        {
            "kind": KINDS.get(held.how, "external"),
            "justification": held.reason or "no reason is given",
        }
    ]


def _invocation(report: LintReport) -> dict[str, Json]:
    faults = [f"{one.code} could not be used: {one.message}" for one in report.faults]
    notes = [*report.notes, *(note for file in report.files for note in file.notes)]
    told: list[Json] = [_told("warning", text) for text in faults]
    told += [_told("note", text) for text in notes]
    return {"executionSuccessful": True, "toolExecutionNotifications": told}


def _told(level: str, text: str) -> Json:
    return {"level": level, "message": {"text": _plain(text)}}
