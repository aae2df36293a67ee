"""The formats of a lint report by name; a module is imported when its format is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from oomdoctor.model.lint import LintReport
    from oomdoctor.render.lint.view import LintView
    from oomdoctor.render.theme import Theme
    from oomdoctor.rules.shape import Rule

FORMATS = ("text", "json", "jsonl", "sarif", "github", "markdown", "html", "junit")


def default_format(environ: Mapping[str, str]) -> str:
    """Return the format where none is asked for: annotations in a workflow of GitHub, else text."""
    return "github" if environ.get("GITHUB_ACTIONS") == "true" else "text"


def rendered(
    report: LintReport,
    style: str,
    *,
    theme: Theme,
    view: LintView,
    root: str,
    rules: Iterable[Rule] = (),
) -> str:
    """Return the report in the format of this name; `root` is where relative paths start."""
    if style in ("json", "jsonl"):
        from oomdoctor.render.lint.json import to_json, to_json_lines

        return (to_json if style == "json" else to_json_lines)(report, root=root)
    if style == "sarif":
        from oomdoctor.render.lint.sarif import to_sarif

        return to_sarif(report, root=root, rules=rules)
    if style == "github":
        from oomdoctor.render.lint.github import to_github

        return to_github(report, root=root)
    if style in ("markdown", "html"):
        return _page(report, style)
    if style == "junit":
        from oomdoctor.render.lint.junit import to_junit

        return to_junit(report)
    from oomdoctor.render.lint.text import render

    return render(report, theme, view)


def _page(report: LintReport, style: str) -> str:
    """Return the report for people elsewhere: in a comment, or as a file to open."""
    if style == "markdown":
        from oomdoctor.render.lint.markdown import to_markdown

        return to_markdown(report)
    from oomdoctor.render.html import page_html
    from oomdoctor.render.lint.page import lint_page

    return page_html(lint_page(report))
