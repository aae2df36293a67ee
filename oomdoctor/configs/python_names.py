"""What a script imports, defines and calls, in its order: so that no rule has to search comments.

from trl import ConstantLengthDataset              import trl.ConstantLengthDataset
class Ours(Trainer):                               class Ours(Trainer)
    def compute_loss(self, ...):                   def Ours.compute_loss
model = model.merge_and_unload()                   call model.merge_and_unload
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.model.core import Fact
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

KEY = "job.calls"
MOST = 5000


class Use(NamedTuple):
    """One line of the fact, and the node that it is quoted from."""

    text: str
    node: ast.AST


def calls(blocks: Sequence[Block]) -> tuple[Fact, ...]:
    """Return the fact of all names that scripts import, define and call; none for no name."""
    rows: list[tuple[str, Quote]] = []
    for block in blocks:
        uses = sorted(_uses(block.tree), key=_place)[: MOST - len(rows)]
        rows.extend((use.text, python_text.quote(use.node, block.lines)) for use in uses)
    if not rows:
        return ()
    value = "\n".join(text for text, _ in rows)
    return (Fact(key=KEY, value=value, quotes=tuple(quote for _, quote in rows)),)


def _place(use: Use) -> tuple[int, int, int, int]:
    node = use.node
    return (
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "end_col_offset", 0) or 0,
    )


def _uses(tree: ast.Module) -> Iterator[Use]:
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _imported(node)
        elif isinstance(node, ast.ClassDef):
            bases = ", ".join(name for base in node.bases if (name := python_text.dotted(base)))
            yield Use(f"class {owner}{node.name}({bases})", node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Use(f"def {owner}{node.name}", node)
        elif isinstance(node, ast.Call) and (name := python_text.called(node)):
            yield Use(f"call {name}", node.func)
        inside = f"{owner}{node.name}." if isinstance(node, ast.ClassDef) else owner
        stack.extend((child, inside) for child in ast.iter_child_nodes(node))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[Use]:
    """Name what is imported in full, whatever it is called here."""
    head = ""
    if isinstance(node, ast.ImportFrom):
        head = "." * node.level + (node.module or "") + "."
    yield from (Use(f"import {head}{alias.name}", alias) for alias in node.names)
