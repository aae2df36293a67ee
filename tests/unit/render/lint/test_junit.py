"""The XML fits the schema and counts what the report holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import xmlschema

from oomdoctor.model.lint import LintReport
from oomdoctor.render.lint.junit import to_junit
from tests.unit.linting.made import finding, full, report

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    from tests.conftest import ROOT

    return xmlschema.XMLSchema(str(ROOT / "tests" / "schemas" / "junit-10.xsd"))


HOSTILE = "<a href='x'>&]]> \x00\x1b[2J \ud800 \ufffe \u202e \"quoted\""


@pytest.mark.parametrize(
    "one",
    [
        full(),
        report(),
        LintReport(jobs=()),
        report(finding(message=HOSTILE, rule="r", source_line=HOSTILE), path='a"&<.yaml'),
    ],
    ids=["full", "nothing", "no file", "hostile"],
)
def test_the_document_fits_the_schema(schema: xmlschema.XMLSchema, one: LintReport) -> None:
    assert [str(fault) for fault in schema.iter_errors(to_junit(one))] == []


def test_the_document_is_as_agreed(golden: Callable[[str, str], None]) -> None:
    golden("screens/full.junit.xml", to_junit(full()))


def test_counts_are_those_of_the_cases() -> None:
    whole = xmlschema.XMLResource(to_junit(full())).root

    for suite in whole:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    assert whole.get("tests") == str(len(whole.findall("testsuite/testcase")))
    assert whole.get("failures") == str(len(whole.findall("testsuite/testcase/failure")))


def test_a_remark_does_not_fail() -> None:
    whole = xmlschema.XMLResource(to_junit(full())).root

    failed = {
        case.get("name", "")[:7]: case.find("failure") is not None
        for case in whole.iter("testcase")
    }
    assert (failed["QLT5002"], failed["COR2001"]) == (False, True)
