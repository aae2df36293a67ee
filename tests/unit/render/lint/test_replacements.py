"""A diff says which lines go and what comes in their place."""

from __future__ import annotations

import difflib

import pytest

from oomdoctor.render.lint.replacements import Replacement, replacements


def difference(before: str, after: str) -> str:
    """Return a unified diff, with the mark for a file that ends without a newline."""
    rows = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), "a/x", "b/x", n=1
    )
    return "".join(
        row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
    )


def applied(text: str, found: tuple[Replacement, ...]) -> str:
    """Do what the replacements say, from the last one to the first."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for one in reversed(found):
        start = starts[one.line - 1] + one.column - 1
        end = starts[one.end_line - 1] + one.end_column - 1
        text = text[:start] + one.text + text[end:]
    return text


def test_a_changed_line_is_replaced_as_a_whole() -> None:
    diff = difference("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 5\nc: 3\n")

    assert replacements(diff) == (Replacement(2, 1, 3, 1, "b: 5\n"),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\nd\ne\nf\n", "a\nc\nd\ne\nF\n"),
        ("a\n", "a\nb\n"),
        ("a\n", "b\na\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("a", "a\nb\n"),
        ("a\nb", "a\nc"),
        ("a\nb\n", "a\nb"),
        ("x\na\nb", "x\n"),
        ("-a\n+b\n", "--a\n++b\n"),
        ("a\n" * 30, "a\n" * 3 + "b\n" + "a\n" * 20 + "c\n" + "a\n" * 4),
    ],
)
def test_what_is_replaced_gives_the_new_text(before: str, after: str) -> None:
    assert applied(before, replacements(difference(before, after))) == after


@pytest.mark.parametrize("text", ["", "nothing\n", "@@ broken @@\n-a\n", "--- a\n+++ b\n"])
def test_no_diff_gives_no_replacement(text: str) -> None:
    assert replacements(text) == ()
