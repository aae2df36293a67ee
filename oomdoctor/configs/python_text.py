"""Python read through `ast`, never run: modules, and snippets that are no complete module."""

from __future__ import annotations

import ast
import operator
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from oomdoctor.configs import segments
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.configs.setting import Lines, Plain
    from oomdoctor.model.core import Quote

MAX_CHARACTERS = 400_000
MAX_ATTEMPTS = 3000
MAX_BRACES = 20_000
"""No script has more; Python itself takes seconds for a formatted text of so many fields."""
MAX_BITS = 1000
"""Python writes no integer of more than 4,300 digits but in base 16 (sys.int_info)."""
OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class Block(NamedTuple):
    """A piece of a script that parses: its tree, and the lines that its positions count from."""

    tree: ast.Module
    lines: Lines


@lru_cache(maxsize=16)
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree, walked once for the twenty readers that look at each of them."""
    return tuple(ast.walk(tree))


def blocks(lines: Lines) -> tuple[Block, ...]:
    """Parse lines as one module; where that fails, piece by piece."""
    text = lines.text
    if len(text) > MAX_CHARACTERS or text.count("{") > MAX_BRACES:
        return ()
    whole = _parse(lines) or _repaired(lines)
    return (whole,) if whole else tuple(_pieces(lines))


def _repaired(lines: Lines) -> Block | None:
    """Parse a fragment with stand-ins for the lines that are no Python."""
    from oomdoctor.configs.python_repair import repaired

    found = repaired([row for _, row in lines.rows])
    if found is None:
        return None
    tree, shift = found
    rows = [(number, row[shift:]) for number, row in lines.rows]
    return Block(tree, lines.part(rows, shift=lines.shift + shift))


def _parse(lines: Lines) -> Block | None:
    """Parse lines after cutting their common indentation."""
    text = lines.text
    import textwrap

    cut = textwrap.dedent(text)
    shift = len(text.split("\n", 1)[0]) - len(cut.split("\n", 1)[0])
    prompts = all(row.startswith((">>>", "...")) for _, row in lines.rows if row.strip())
    if prompts and lines.rows:
        shift = 4
        cut = "\n".join(row[4:] for _, row in lines.rows) + "\n"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(cut)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows = [(number, row[shift:]) for number, row in lines.rows] if shift else lines.rows
    return Block(tree, lines.part(rows, shift=lines.shift + shift))


def _pieces(lines: Lines) -> Iterator[Block]:
    """Parse statement by statement; a line that begins none is skipped."""
    rows = lines.rows
    texts = [row for _, row in rows]
    at = attempts = unclosed = 0
    while at < len(rows) and attempts < MAX_ATTEMPTS:
        if not texts[at].strip():
            at += 1
            continue
        followed = unclosed < segments.MOST_UNCLOSED
        taken = segments.python_extent(texts, at) if followed else 1
        unclosed += taken == 1 and segments.opens(texts[at])
        attempts += 1 + taken // 20
        block = _parse(lines.part(rows[at : at + taken]))
        if block is not None and block.tree.body:
            yield block
        at += taken if block is not None else 1


class Names:
    """Values of names that are assigned constants, and the expressions behind others."""

    def __init__(self, tree: ast.AST) -> None:
        """Collect simple assignments; a name with two different ones has no single value."""
        self.values: dict[str, ast.expr] = {}
        seen: dict[str, int] = {}
        for node in nodes(tree):
            pair = _assigned(node)
            if pair is not None:
                seen[pair[0]] = seen.get(pair[0], 0) + 1
                self.values[pair[0]] = pair[1]
        for name, times in seen.items():
            if times > 1:
                del self.values[name]


def _assigned(node: ast.AST) -> tuple[str, ast.expr] | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return (target.id, node.value) if isinstance(target, ast.Name) else None
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return node.target.id, node.value
    return None


def value_of(node: ast.expr, names: Names, *, depth: int = 0) -> Plain:
    """Fold an expression to a plain value; what has none is its source text."""
    if depth > 12 or isinstance(node, ast.IfExp):
        return None
    match node:
        case ast.Constant(value=value):
            return _constant(value)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return tuple(value_of(item, names, depth=depth + 1) for item in items[:200])
        case ast.UnaryOp(op=ast.USub(), operand=left) | ast.BinOp(left=left):
            return _computed(node, left, names, depth)
        case ast.Name(id=name) if name in names.values:
            return value_of(names.values[name], names, depth=depth + 1)
    return source(node)


def _constant(value: object) -> Plain:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return hex(value)
    return value if isinstance(value, (bool, int, float, str)) else None


def _computed(node: ast.expr, left: ast.expr, names: Names, depth: int) -> Plain:
    one = value_of(left, names, depth=depth + 1)
    if isinstance(node, ast.BinOp):
        return _fold(one, node.op, value_of(node.right, names, depth=depth + 1))
    return -one if isinstance(one, (int, float)) else None


def source(node: ast.AST) -> str | None:
    """Return an expression's text, None where it is too large to be a setting."""
    try:
        text = ast.unparse(node)
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= 400 else None


def _fold(left: Plain, op: ast.operator, right: Plain) -> Plain:
    """Compute `4096*2`, `2**14`, `8 // 2`; huge powers and text stay unknown."""
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    if isinstance(op, ast.Pow) and (abs(left) > 4096 or abs(right) > 64):
        return None
    done = OPERATIONS.get(type(op))
    try:
        result = done(left, right) if done else None
    except (ZeroDivisionError, OverflowError):
        return None
    return result if isinstance(result, (int, float)) else None


def quote(node: ast.AST, lines: Lines) -> Quote:
    """Quote an expression, to the end of its first line where it is longer."""
    row = getattr(node, "lineno", 1) - 1
    text = lines.rows[min(row, len(lines.rows) - 1)][1]
    start = _column(text, getattr(node, "col_offset", 0))
    same = getattr(node, "end_lineno", None) == row + 1
    end = _column(text, getattr(node, "end_col_offset", 0)) if same else None
    return lines.quote(row, start, end)


def _column(text: str, offset: int) -> int:
    """Turn an offset in UTF-8 bytes, as ast counts, into characters."""
    if text.isascii():
        return offset
    return len(text.encode("utf-8")[:offset].decode("utf-8", errors="ignore"))


def called(node: ast.Call) -> str:
    """Return the dotted name of what is called."""
    return dotted(node.func)


def dotted(node: ast.AST) -> str:
    """Return the dotted name of an expression, empty where it has none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif isinstance(node, ast.Call):
        parts.append(dotted(node.func))
    return ".".join(reversed(parts))
