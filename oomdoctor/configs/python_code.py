"""Habits in training code that cost memory, seen in its syntax tree.

total_loss += loss                     the running sum keeps every step's graph
loss.backward(retain_graph=True)
outputs.append(model(x))               device tensors pile up in a list
def evaluate(): ...                    an evaluation loop without no_grad
torch.load(path)                       without map_location: onto the device it was saved from
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_freeze, python_kept, python_text
from oomdoctor.configs.claims import Claim
from oomdoctor.configs.python_loops import LOOPS, calls, eval_loops, under_no_grad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

DETACHING = frozenset(
    (
        "item",
        "detach",
        "cpu",
        "numpy",
        "tolist",
        "float",
        "int",
        "clone_detached",
        "data",
        "len",
        "str",
    )
)
LOSSES = ("loss", "error", "mse", "nll")
OUTPUTS = (
    "output",
    "logit",
    "pred",
    "hidden",
    "feature",
    "embedding",
    "prob",
    "loss",
    "activation",
)


def read(block: Block) -> Iterator[tuple[Claim, Quote]]:
    """Find the habits in one parsed piece."""
    seen: set[str] = set()
    for claim, node in _all(block.tree):
        if claim.key not in seen:
            seen.add(claim.key)
            yield claim, python_text.quote(node, block.lines)
    yield from python_freeze.read(block)


def _all(tree: ast.Module) -> Iterator[tuple[Claim, ast.AST]]:
    guarded = under_no_grad(tree)
    for node in python_text.nodes(tree):
        if node not in guarded and _keeps_graph(node):
            yield Claim("code.loss_accumulated", value=True), node
        if isinstance(node, ast.Call) and node not in guarded and _appends(node):
            yield Claim("code.appends_outputs", value=True), node
        if isinstance(node, LOOPS):
            inner = next((c for c in ast.walk(node) if calls(c, ("empty_cache",))), None)
            if inner is not None:
                yield Claim("code.empty_cache_in_loop", value=True), inner
    yield from _keeps(tree)
    for loop in eval_loops(tree):
        yield Claim("code.eval_without_no_grad", value=not loop.safe), loop.node
        yield Claim("eval.no_grad", value=loop.safe), loop.node


def _keeps(tree: ast.Module) -> Iterator[tuple[Claim, ast.AST]]:
    """Find what stays on the device or goes there when a checkpoint is restored."""
    for node, lasting in python_kept.kept(tree):
        yield Claim("code.appends_outputs", value=True), node
        if lasting:
            yield Claim("code.keeps_device_tensors", value=True), node
    for node in python_text.nodes(tree):
        if isinstance(node, ast.Call) and _loads_on_device(node):
            yield Claim("code.load_on_device", value=True), node
            source = (python_text.source(node) or "").lower()
            if any(mark in source for mark in ("checkpoint", "ckpt", "resume", "last")):
                yield Claim("resume.map_to_device", value=True), node


def _keeps_graph(node: ast.AST) -> bool:
    """Say whether a running sum takes the loss tensor itself: `total += loss`."""
    value: ast.expr
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        target, value = python_text.dotted(node.target), node.value
    elif (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.BinOp)
        and isinstance(node.value.op, ast.Add)
        and python_text.dotted(node.targets[0]) == python_text.dotted(node.value.left)
    ):
        target, value = python_text.dotted(node.targets[0]), node.value.right
    else:
        return False
    low = target.rpartition(".")[2].lower()
    running = any(
        mark in low
        for mark in ("total", "running", "sum", "epoch", "avg", "train", "accum", "history", "cum")
    )
    return running and _is_tensor(value, LOSSES)


def _is_tensor(value: ast.expr, marks: tuple[str, ...]) -> bool:
    """Say whether an expression names a loss or an output and nothing takes it off the graph."""
    for node in ast.walk(value):
        name = ""
        if isinstance(node, ast.Call):
            name = python_text.called(node).rpartition(".")[2]
        elif isinstance(node, ast.Attribute):
            name = node.attr
        if name in DETACHING:
            return False
    head = value
    while isinstance(head, ast.BinOp):
        head = head.left
    name = python_text.dotted(head).lower() if not isinstance(head, ast.Subscript) else ""
    return any(mark in name for mark in marks)


def _appends(node: ast.Call) -> bool:
    """Say whether a model's output is appended to a list as it is."""
    if not calls(node, ("append",)) or len(node.args) != 1:
        return False
    value = node.args[0]
    if isinstance(value, ast.Call):
        return python_text.called(value).rpartition(".")[2] in ("model", "net", "network")
    return _is_tensor(value, OUTPUTS)


def _loads_on_device(node: ast.Call) -> bool:
    """Say whether torch.load reads onto the device, or where the file says."""
    name = python_text.called(node)
    restores = name.rpartition(".")[2] == "load_from_checkpoint"
    if name != "torch.load" and not restores:
        return False
    place = next((word.value for word in node.keywords if word.arg == "map_location"), None)
    if place is None and len(node.args) > 1 and not restores:
        place = node.args[1]
    written = (python_text.source(place) or "") if place is not None else ""
    return not any(word in written for word in ("cpu", "meta", "lambda storage, loc: storage"))
