"""Takes arguments, entries and assignments out of a script, and renames them; the rest stays.

SFTConfig(output_dir="o", packing=True)      without packing:   SFTConfig(output_dir="o")
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from oomdoctor.configs.python_span import Span, offset, span

if TYPE_CHECKING:
    from oomdoctor.configs.python_place import Place


def remove(text: str, place: Place) -> str | None:
    """Return the text without a setting; None where it cannot go on its own."""
    if place.name is None:
        return None
    if isinstance(place.name, ast.stmt):
        where = span(text, place.name)
        return _without_line(text, where) or None
    start = span(text, place.name).start if isinstance(place.name, ast.expr) else None
    if start is None:
        start = offset(text, place.name.lineno, place.name.col_offset)
    return _without_item(text, Span(start, _closed(text, start, span(text, place.value))))


def rename(text: str, place: Place, name: str) -> str | None:
    """Return the text with another name for a setting; None where its name is the script's own."""
    if isinstance(place.name, ast.keyword):
        start = offset(text, place.name.lineno, place.name.col_offset)
        return text[:start] + name + text[start + len(place.name.arg or "") :]
    if isinstance(place.name, ast.Constant):
        where = span(text, place.name)
        mark = text[where.start]
        return f"{text[: where.start]}{mark}{name}{mark}{text[where.end :]}"
    if isinstance(place.name, (ast.Assign, ast.AnnAssign)):
        target = place.name.targets[0] if isinstance(place.name, ast.Assign) else place.name.target
        where = span(text, target)
        head = text[where.start : where.end].rpartition(".")
        return text[: where.start] + head[0] + head[1] + name + text[where.end :]
    return None


def _closed(text: str, start: int, value: Span) -> int:
    """Return where a value ends with the parentheses that stand around it."""
    opened = text[start : value.start].count("(")
    end = value.end
    for _ in range(opened):
        close = text.find(")", end)
        if close < 0:
            break
        end = close + 1
    return end


def _without_item(text: str, where: Span) -> str:
    """Cut an item of a list with the comma behind it, or else the one before."""
    behind = re.compile(r"\s*,").match(text, where.end)
    row = text.rfind("\n", 0, where.start) + 1
    lead = text[row : where.start]
    end = behind.end() if behind else where.end
    rest = re.compile(r"[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)").match(text, end)
    if not lead.strip() and rest is not None:  # lines of its own: its comment goes, too
        return text[:row] + text[rest.end() :]
    if behind is not None:
        gap = re.compile(r"[ \t]*").match(text, end)
        return text[: where.start] + text[gap.end() if gap else end :]
    before = re.compile(r",\s*\Z").search(text[: where.start])
    return text[: before.start() if before else where.start] + text[where.end :]


def _without_line(text: str, where: Span) -> str | None:
    """Cut a statement that has its lines to itself."""
    row = text.rfind("\n", 0, where.start) + 1
    rest = re.compile(r"[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)").match(text, where.end)
    if text[row : where.start].strip() or rest is None:
        return None
    return text[:row] + text[rest.end() :]
