"""The SARIF log fits the published schema and says what the report says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from oomdoctor.model.core import Quote
from oomdoctor.model.enums import Severity
from oomdoctor.model.lint import LintReport
from oomdoctor.render.lint.sarif import as_log, to_sarif
from tests.unit.linting.made import finding, full, report

if TYPE_CHECKING:
    from pathlib import Path


def run_of(one: LintReport) -> Any:
    run: Any = as_log(one, root=".")["runs"]
    return run[0]


@pytest.mark.parametrize("one", [full(), report(), LintReport(jobs=())], ids=["full", "none", "0"])
def test_the_log_fits_the_schema(one: LintReport, root: Path) -> None:
    text = (root / "tests" / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8")
    validator = jsonschema.Draft4Validator(
        json.loads(text), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
    )

    faults = [fault.message for fault in validator.iter_errors(json.loads(to_sarif(one, root=".")))]

    assert faults == []


def test_the_log_is_as_agreed(golden: Any) -> None:
    golden("screens/full.sarif", to_sarif(full(), root="."))


def test_every_result_points_at_its_rule() -> None:
    run = run_of(full())
    rules = run["tool"]["driver"]["rules"]

    assert [rules[one["ruleIndex"]]["id"] for one in run["results"]] == [
        one["ruleId"] for one in run["results"]
    ]


def test_a_line_that_moves_keeps_its_fingerprint() -> None:
    before, after = (run_of(report(finding(line=at)))["results"][0] for at in (3, 30))

    assert before["partialFingerprints"] == after["partialFingerprints"]
    assert before["locations"] != after["locations"]


def test_equal_findings_have_fingerprints_of_their_own() -> None:
    results = run_of(report(finding(line=3), finding(line=9)))["results"]

    marks = [one["partialFingerprints"]["primaryLocationLineHash"] for one in results]
    assert [mark.rpartition(":")[2] for mark in marks] == ["1", "2"]


def test_a_finding_that_is_held_back_says_how_and_why() -> None:
    held = [one["suppressions"] for one in run_of(full())["results"] if one["suppressions"]]

    assert held == [
        [{"kind": "inSource", "justification": "a smoke test"}],
        [{"kind": "external", "justification": "no reason is given"}],
    ]


def test_a_patch_becomes_replacements() -> None:
    change = run_of(full())["results"][0]["fixes"][0]["artifactChanges"][0]

    assert change["artifactLocation"] == {"uri": "conf/train.yaml", "uriBaseId": "%SRCROOT%"}
    assert [
        (one["deletedRegion"]["startLine"], one["insertedContent"]["text"])
        for one in change["replacements"]
    ] == [(3, ""), (5, "micro_batch_size: 4\n")]


def test_a_finding_without_a_line_is_at_the_first_one() -> None:
    where = run_of(report(finding(path=None, line=None, column=None)))["results"][0]["locations"]

    assert where[0]["physicalLocation"] == {
        "artifactLocation": {"uri": "conf/train.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }


def test_a_path_is_a_uri() -> None:
    odd = report(finding(path="conf/a b#1.yaml"), path="conf/a b#1.yaml")
    outside = report(finding(path="/data/x y.yaml"), path="/data/x y.yaml")

    bytes_ = report(path="conf/\udcff.yaml")

    assert run_of(bytes_)["artifacts"][0]["location"]["uri"] == "conf/%FF.yaml"
    found = [run_of(one)["artifacts"][0]["location"] for one in (odd, outside)]
    assert found == [
        {"uri": "conf/a%20b%231.yaml", "uriBaseId": "%SRCROOT%"},
        {"uri": "file:///data/x%20y.yaml"},
    ]


def test_brackets_of_an_input_make_no_link_and_no_placeholder() -> None:
    text = run_of(report(finding(message="[click](http://x) and {0}")))["results"][0]["message"]

    assert text == {"text": "\\[click](http://x) and {{0}}."}


@pytest.mark.parametrize(
    ("severity", "level"),
    [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")],
)
def test_severities_are_levels(severity: Severity, level: str) -> None:
    run = run_of(report(finding(severity=severity)))

    assert run["results"][0]["level"] == level
    assert run["tool"]["driver"]["rules"][0]["defaultConfiguration"] == {"level": level}


def test_other_places_are_related_locations() -> None:
    there = Quote(artifact="ds.json", line=7, text='"fp16": 1', column=3, end_column=12)

    related = run_of(report(finding(quotes=(there,))))["results"][0]["relatedLocations"]

    assert related[0]["physicalLocation"]["region"] == {
        "startLine": 7,
        "startColumn": 3,
        "endColumn": 12,
    }
