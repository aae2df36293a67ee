"""Evaluation loops in training code: of a named function, over a validation loader, after eval().

def validate(...): for batch in loader: model(batch)      told by the function's name
for i, (x, y) in enumerate(val_loader): out = model(x)    told by what it goes over
model.eval()                                              told by the mode, until model.train()
for x, y in loader: out = model(x)
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOOPS = (ast.For, ast.While, ast.AsyncFor)
MODELS = frozenset(
    ("model", "net", "network", "forward", "encoder", "decoder", "generator", "netg")
)
EVALUATIONS = (
    "eval",
    "evaluate",
    "validate",
    "validation",
    "val_loop",
    "valid",
    "test_loop",
    "val_epoch",
)
NO_GRAD = ("no_grad", "inference_mode")
_BODIES = (ast.With, ast.AsyncWith, ast.If, ast.Try)


class EvalLoop(NamedTuple):
    """A place that evaluates, and whether it keeps no graph."""

    node: ast.AST
    safe: bool


def eval_loops(tree: ast.Module) -> Iterator[EvalLoop]:
    """Yield the evaluating functions, and the loops outside them that evaluate."""
    guarded = under_no_grad(tree)
    named = [node for node in python_text.nodes(tree) if _evaluates(node)]
    inside = {child for node in named for child in ast.walk(node)}
    for node in named:
        yield EvalLoop(node, any(child in guarded for child in ast.walk(node)))
    bodies: list[Sequence[ast.stmt]] = [tree.body]
    bodies += [node.body for node in python_text.nodes(tree) if isinstance(node, ast.FunctionDef)]
    for body in bodies:
        for loop, safe in _loops_of(body):
            if loop not in inside:
                kept = safe or any(child in guarded for child in ast.walk(loop))
                yield EvalLoop(loop, kept)


def under_no_grad(tree: ast.AST) -> set[ast.AST]:
    """Collect what runs under no_grad or inference_mode, by context or by decorator."""
    inside: set[ast.AST] = set()
    for node in python_text.nodes(tree):
        guards: list[ast.expr] = []
        if isinstance(node, (ast.With, ast.AsyncWith)):
            guards = [item.context_expr for item in node.items]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            guards = node.decorator_list
        if any(_is_guard(guard) for guard in guards):
            inside.update(ast.walk(node))
    return inside


def calls(node: ast.AST, names: frozenset[str] | tuple[str, ...]) -> bool:
    """Say whether a node is a call of one of these functions or methods."""
    return isinstance(node, ast.Call) and python_text.called(node).rpartition(".")[2] in names


def _is_guard(guard: ast.expr) -> bool:
    text = python_text.source(guard) or ""
    return any(mark in text for mark in NO_GRAD) or "set_grad_enabled(False)" in text


def _evaluates(node: ast.AST) -> bool:
    """Say whether a node is a function that evaluates a model in a loop."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    low = node.name.lower()
    named = any(low == mark or low.startswith((f"{mark}_", f"run_{mark}")) for mark in EVALUATIONS)
    loops = [child for child in ast.walk(node) if isinstance(child, LOOPS)]
    return named and not _trains(node) and any(_runs_model(loop) for loop in loops)


def _loops_of(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the evaluating loops of a body with whether gradients were switched off before."""
    evaluating = switched_off = False
    for node in _statements(body):
        if isinstance(node, LOOPS):
            over = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node.test
            meant = evaluating or _goes_over_validation(over)
            if meant and _runs_model(node) and not _trains(node):
                yield node, switched_off
            continue
        for call in (child for child in ast.walk(node) if isinstance(child, ast.Call)):
            if calls(call, ("eval", "train")) and isinstance(call.func, ast.Attribute):
                evaluating = call.func.attr == "eval"
            elif calls(call, ("set_grad_enabled",)):
                switched_off = "(False)" in (python_text.source(call) or "")


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements in their order, those of `with`, `if` and `try` one by one."""
    for node in body:
        if isinstance(node, _BODIES):
            yield from _statements(node.body)
            continue
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node


def _goes_over_validation(over: ast.expr) -> bool:
    return _validation().search(python_text.source(over) or "") is not None


def _runs_model(loop: ast.AST) -> bool:
    return any(calls(child, MODELS) for child in ast.walk(loop))


def _trains(node: ast.AST) -> bool:
    return any(
        calls(child, ("backward",)) or _is_call_of_optimizer(child) for child in ast.walk(node)
    )


def _is_call_of_optimizer(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and "optim" in python_text.called(node).lower()


@cache
def _validation() -> re.Pattern[str]:
    return re.compile(
        r"(?<![A-Za-z])(?:val|valid|validation|test|testing|eval|dev)_?"
        r"(?:data_?)?(?:loader|dl|iter|iterator|batches|set|gen|dataloader|ds)\b",
        re.IGNORECASE,
    )
