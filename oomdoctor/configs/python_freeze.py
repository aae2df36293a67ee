"""Scripts that set every parameter to be trained after an adapter was attached.

model = get_peft_model(model, config)
for p in model.parameters():
    p.requires_grad = True                 code.unfreezes_base
model.requires_grad_(True)                 the same in one call
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

ALL = ("parameters", "named_parameters")


def read(block: Block) -> Iterator[tuple[Claim, Quote]]:
    """Find the first place that unfreezes everything after the adapter was attached."""
    calls = [node for node in python_text.nodes(block.tree) if isinstance(node, ast.Call)]
    attached = [call.lineno for call in calls if _attaches(call)]
    if not attached:
        return
    for node in python_text.nodes(block.tree):
        found = _unfreezes(node)
        if found is not None and found.lineno > min(attached):
            where = python_text.quote(found, block.lines)
            yield Claim("code.unfreezes_base", value=True), where
            return


def _attaches(node: ast.Call) -> bool:
    name = python_text.called(node)
    return name.endswith("get_peft_model") or "PeftModel" in name


def _unfreezes(node: ast.AST) -> ast.stmt | ast.expr | None:
    """Return what trains everything: the assignment in a bare loop, or the call on a model."""
    if isinstance(node, ast.For):
        over = node.iter
        if isinstance(over, ast.Call) and python_text.called(over).rpartition(".")[2] in ALL:
            return next((one for one in node.body if _sets(one)), None)
    if isinstance(node, ast.Call) and python_text.called(node).endswith(".requires_grad_"):
        owner = python_text.called(node).rpartition(".requires_grad_")[0]
        on = not node.args or _true(node.args[0])
        if owner in ("model", "peft_model", "model.base_model", "self.model") and on:
            return node
    return None


def _sets(node: ast.stmt) -> bool:
    """Match `p.requires_grad = True` and `p.requires_grad_()`, under no condition."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        named = isinstance(target, ast.Attribute) and target.attr == "requires_grad"
        return named and _true(node.value)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        name = python_text.called(call).rpartition(".")[2]
        return name == "requires_grad_" and (not call.args or _true(call.args[0]))
    return False


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
