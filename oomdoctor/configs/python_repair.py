"""Makes a pasted stretch of a script parse: prose, ellipses and missing bodies are stood in for.

# tool/train.py, validate()             a comment further left than the code
    model.eval()
    for x, y in val_loader:
        then the usual things ...       no Python: stands as `pass`
        out = model(x)

Every line keeps its number, so that quotes of what does parse stay right.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import cache

MOST_REPAIRS = 24
MOST_LINES = 2000
_FOLLOWERS = ("else", "elif", "except", "finally")


def repaired(rows: list[str]) -> tuple[ast.Module, int] | None:
    """Return (tree, columns cut on the left), None where too much would have to be stood in for."""
    if not rows or len(rows) > MOST_LINES:
        return None
    indents = [_indent(row) for row in rows if row.strip() and not row.lstrip().startswith("#")]
    shift = min(indents, default=0)
    lines = [_prepared(row[shift:] if _indent(row) >= shift else "") for row in rows]
    room = min(MOST_REPAIRS, max(1, len(indents) // 3))
    for _ in range(room + 1):
        tree = _tree(lines)
        if isinstance(tree, ast.Module):
            return tree, shift
        if not _stood_in(lines, tree):
            return None
    return None


def _tree(lines: list[str]) -> ast.Module | SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse("\n".join(lines) + "\n")
    except SyntaxError as fault:
        return fault
    except (ValueError, RecursionError, MemoryError):
        return None


def _stood_in(lines: list[str], fault: SyntaxError | None) -> bool:
    """Put something that parses in the place of the faulty line; False where nothing does."""
    if fault is None or fault.lineno is None:
        return False
    if "expected an indented block" in (fault.msg or ""):
        at = _last_header(lines, min(fault.lineno, len(lines)) - 1)
        if at is None:
            return False
        lines[at] += " pass"
        return True
    if isinstance(fault, IndentationError):
        return _rejoined(lines, fault.lineno - 1)
    row = lines[fault.lineno - 1] if fault.lineno <= len(lines) else ""
    if row.strip() in ("", "pass"):
        return False
    lines[fault.lineno - 1] = row[: _indent(row)] + _stand_in(row.strip())
    return lines[fault.lineno - 1] != row


def _rejoined(lines: list[str], at: int) -> bool:
    """Give code that was cut from another depth a block of its own, by a free row above it."""
    if not 0 < at < len(lines):
        return False
    if _is_gap(lines[at]) and lines[at].strip():
        lines[at] = ""
        return True
    free = at - 1
    if not _is_gap(lines[free]):
        return False
    before = next((row for row in reversed(lines[:free]) if not _is_gap(row)), "")
    if _indent(before) >= _indent(lines[at]):
        return False
    lines[free] = before[: _indent(before)] + "if 1:"
    return True


def _is_gap(row: str) -> bool:
    """Say whether a row holds no code: blank, a remark, or dots for what was left out."""
    return not row.strip(" \t.()[]#-*") or row.lstrip().startswith("#") or row.strip() == "pass"


def _stand_in(text: str) -> str:
    """Return a statement for a line that is no Python: a block stays one."""
    if text.startswith(_FOLLOWERS) or text.split("#", 1)[0].rstrip().endswith(":"):
        return "while 1:" if text.startswith(("for ", "while ")) else "if 1:"
    return "pass"


def _last_header(lines: list[str], at: int) -> int | None:
    """Return the line before `at`, or there, that opens a block without a body."""
    for place in range(min(at, len(lines) - 1), -1, -1):
        text = lines[place].split("#", 1)[0].rstrip()
        if text.endswith(":"):
            lines[place] = text
            return place
    return None


def _prepared(row: str) -> str:
    """Write out ellipses, and leave parameters away that are only hinted at."""
    row = row.replace("\u2026", "...")
    return _hinted().sub(r"\1(*_)", row) if "..." in row and "def " in row else row


@cache
def _hinted() -> re.Pattern[str]:
    return re.compile(r"(def \w+)\([^()]{0,200}\.\.\.[^()]{0,200}\)")


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())
