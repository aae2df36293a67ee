"""Positions of syntax tree nodes as offsets in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    import ast


class Span(NamedTuple):
    """A stretch of the text as offsets in characters."""

    start: int
    end: int


def span(text: str, node: ast.AST) -> Span:
    """Return where a node stands."""
    start = offset(text, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
    end = offset(text, getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0))
    return Span(start, end)


def offset(text: str, line: int, column: int) -> int:
    """Turn a line and a column in UTF-8 bytes, as ast counts, into an offset in characters."""
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    row = text[at : text.find("\n", at) if "\n" in text[at:] else None]
    return at + len(row.encode("utf-8")[:column].decode("utf-8", errors="ignore"))


def put(text: str, where: Span, written: str) -> str:
    """Return the text with other words in a place."""
    return text[: where.start] + written + text[where.end :]
