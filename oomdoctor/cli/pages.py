"""A page in the format that was asked for: text for this stream, Markdown, or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from oomdoctor.cli.output import theme_for

if TYPE_CHECKING:
    from oomdoctor.render.page import Page


class Wanted(TypedDict):
    """The options that say how a page is laid out and where it goes."""

    format: str
    output: str | None
    color: str
    width: int | None
    quiet: bool


def written(page: Page, wanted: Wanted) -> str:
    """Return the page as text, markdown or html."""
    if wanted["format"] == "html":
        from oomdoctor.render.html import page_html

        return page_html(page)
    if wanted["format"] == "markdown":
        from oomdoctor.render.page_markdown import page_markdown

        return page_markdown(page)
    from oomdoctor.render.page_text import page_lines
    from oomdoctor.render.text import paint

    to_file = wanted["output"] not in (None, "-")
    theme = theme_for(color=wanted["color"], width=wanted["width"], to_file=to_file)
    return paint(page_lines(page, theme, brief=wanted["quiet"]), theme)
