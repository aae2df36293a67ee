"""Every way in which a lint report is written, by name; each is loaded only when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError

if TYPE_CHECKING:
    from oomdoctor.model.lint import LintReport
    from oomdoctor.render.lint.view import LintView
    from oomdoctor.render.theme import Theme


def rendered(report: LintReport, style: str, *, root: str, theme: Theme, view: LintView) -> str:
    """Return the report in a format; `root` is what paths are relative to."""
    match style:
        case "text":
            from oomdoctor.render.lint.text import render

            text = render(report, theme=theme, view=view)
        case "json":
            from oomdoctor.render.lint.json import to_json

            text = to_json(report, root=root)
        case "jsonl":
            from oomdoctor.render.lint.json import to_json_lines

            text = to_json_lines(report, root=root)
        case "sarif":
            from oomdoctor.render.lint.sarif import to_sarif

            text = to_sarif(report, root=root)
        case "github":
            from oomdoctor.render.lint.github import to_github

            text = to_github(report, root=root)
        case "markdown":
            from oomdoctor.render.lint.markdown import to_markdown

            text = to_markdown(report)
        case "junit":
            from oomdoctor.render.lint.junit import to_junit

            text = to_junit(report)
        case _:
            raise UsageError(f"no format is called {style!r}")
    return text
