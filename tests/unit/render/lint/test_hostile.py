"""Whatever an input holds, every format stays whole."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import jsonschema
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.model.core import Quote
from oomdoctor.record import replace
from oomdoctor.render.lint.formats import rendered
from oomdoctor.render.lint.view import LintView
from oomdoctor.render.theme import Theme
from tests.conftest import ROOT
from tests.unit.linting.made import DIFF, finding, fix, report
from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    from oomdoctor.model.lint import LintReport

SCHEMAS = ROOT / "tests" / "schemas"
PIECES = st.sampled_from(
    ["\x1b[2J", "\n::error::", "```", "]]>", "<b>", "@all", "\u202e", "\ud800", "\x00", "{0}", "|"]
)
TEXT = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=4).map("".join)
ACTING = set("\x1b\x00\u202e\ud800")
PLACE = st.one_of(st.none(), st.integers(1, 90))


@st.composite
def reports(draw: st.DrawFn) -> LintReport:
    """Draw a report whose texts come from somebody who means harm."""
    line, path = draw(PLACE), draw(TEXT)
    patch = replace(fix().patches[0], file=draw(TEXT), diff=draw(st.sampled_from([DIFF, "", "@@"])))
    one = finding(
        message=draw(TEXT),
        title=draw(TEXT),
        path=path,
        line=line,
        column=draw(PLACE) if line else None,
        end_column=draw(PLACE),
        key=draw(TEXT),
        source_line=draw(st.one_of(st.none(), TEXT)),
        quotes=(Quote(artifact=draw(TEXT), line=3, text=draw(TEXT)),),
        fixes=(replace(fix(), title=draw(TEXT), patches=(patch,)),),
        assumed=(draw(TEXT),),
        url=draw(st.sampled_from([None, "https://example.org/x"])),
    )
    return report(one, path=path, notes=(draw(TEXT),))


def shown(one: LintReport, style: str) -> str:
    view = LintView(verbosity=1)
    return rendered(one, style, theme=Theme(width=60), view=view, root=".")


@cache
def sarif() -> jsonschema.Draft4Validator:
    text = (SCHEMAS / "sarif-2.1.0.json").read_text(encoding="utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


@cache
def junit() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


@settings(max_examples=40, deadline=None)
@given(one=reports())
def test_sarif_fits_its_schema(one: LintReport) -> None:
    assert [fault.message for fault in sarif().iter_errors(json.loads(shown(one, "sarif")))] == []


@settings(max_examples=40, deadline=None)
@given(one=reports())
def test_junit_fits_its_schema(one: LintReport) -> None:
    assert [str(fault) for fault in junit().iter_errors(shown(one, "junit"))] == []


@settings(max_examples=60, deadline=None)
@given(one=reports())
def test_a_workflow_gets_one_command_per_finding(one: LintReport) -> None:
    text = shown(one, "github")

    assert [line for line in text.split("\n")[1:] if line.startswith("::")] == []
    assert not ACTING & set(text)


@settings(max_examples=60, deadline=None)
@given(one=reports())
def test_pages_hold_nothing_that_acts(one: LintReport) -> None:
    page, markdown, html = (shown(one, style) for style in ("text", "markdown", "html"))

    assert len(read_html(html).scripts) == 1
    for text in (page, markdown, html):
        assert not ACTING & set(text)
    assert json.loads(shown(one, "json"))["counts"]["error"] == 1
    assert len(shown(one, "jsonl").splitlines()) == 1
