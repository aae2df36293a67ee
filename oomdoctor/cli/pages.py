"""A page in the format that was asked for: text for this stream, Markdown, or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.cli.output import theme_for

if TYPE_CHECKING:
    from oomdoctor.render.page import Page


def written(
    page: Page, *, style: str, color: str, width: int | None, brief: bool, to_file: bool
) -> str:
    """Return the page as text, markdown or html."""
    if style == "html":
        from oomdoctor.render.html import page_html

        return page_html(page, template="estimate.html")
    if style == "markdown":
        from oomdoctor.render.page_markdown import page_markdown

        return page_markdown(page)
    from oomdoctor.render.page_text import page_lines
    from oomdoctor.render.text import paint

    theme = theme_for(color=color, width=width, to_file=to_file)
    return paint(page_lines(page, theme, brief=brief), theme)
