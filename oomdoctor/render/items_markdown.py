"""Items of a page as Markdown: stacked bars as tables, folded items as details, code in fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.escape import code_block, html, markdown
from oomdoctor.render.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.page import Code, Fold, Point, Quoted, Stack

SIGNS = {"•": "", "·": "", "+": "for: ", "-": "", "!": ""}


def stack_table(stack: Stack) -> str:
    """Return the parts of a bar as a table."""
    rows = [
        f"| {markdown(one.name)} | {markdown(one.amount)} | "
        f"{percent(min(one.value / stack.whole, 1.0)) if stack.whole else ''} |"
        f" {markdown(one.note)} |"
        for one in stack.parts
    ]
    head = ["| part | size | share | how it is known |", "|---|---:|---:|---|"]
    return "\n".join([markdown(stack.caption), "", *head, *rows])


def fold_parts(fold: Fold) -> list[str]:
    """Return an item: folded, unless it is open from the start."""
    body = [
        *map(markdown, fold.sentences),
        points(fold.points),
        quotes(fold.quotes),
        *map(code, fold.codes),
        points(fold.contrary),
        quotes(fold.contrary_quotes),
    ]
    held = [part for part in body if part]
    head = " ".join(filter(None, [fold.badge, fold.title]))
    tag = f" ({fold.tag})" if fold.tag else ""
    if fold.opened or not held:
        return [f"**{markdown(head)}**{markdown(tag)}", *held]
    return [f"<details><summary>{html(head + tag)}</summary>", *held, "</details>"]


def points(listed: Sequence[Point]) -> str:
    """Return remarks as a list."""
    return "\n".join(f"- {SIGNS.get(one.sign, '')}{markdown(one.text)}" for one in listed)


def quotes(listed: Sequence[Quoted]) -> str:
    """Return lines of inputs in a block that they cannot close."""
    return code_block("\n".join(f"{one.place}: {one.text}" for one in listed)) if listed else ""


def code(one: Code) -> str:
    """Return text to copy in a fence."""
    return code_block(one.text, language=one.language)
