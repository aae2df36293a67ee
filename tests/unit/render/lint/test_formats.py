"""Every format by its name."""

from __future__ import annotations

import pytest

from oomdoctor.render.lint.formats import FORMATS, default_format, rendered
from oomdoctor.render.lint.view import LintView
from oomdoctor.render.theme import Theme
from tests.unit.linting.made import full

STARTS = {
    "text": "conf/train.yaml:3:1: error",
    "json": "{\n",
    "jsonl": '{"assumed"',
    "sarif": '{\n  "$schema"',
    "github": "::error ",
    "markdown": "**oomdoctor lint:",
    "html": "<!doctype html>",
    "junit": "<?xml ",
}


@pytest.mark.parametrize("style", FORMATS)
def test_a_format_is_written_by_its_name(style: str) -> None:
    text = rendered(full(), style, theme=Theme(), view=LintView(), root=".")

    assert text.startswith(STARTS[style])
    assert text.endswith("\n")


@pytest.mark.parametrize(
    ("environ", "style"),
    [({}, "text"), ({"GITHUB_ACTIONS": "true"}, "github"), ({"GITHUB_ACTIONS": ""}, "text")],
    ids=str,
)
def test_a_workflow_of_github_gets_annotations(environ: dict[str, str], style: str) -> None:
    assert default_format(environ) == style
