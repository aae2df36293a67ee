"""Functions of the rule language: min max abs ceil_to matches count present absent."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.facts.registry import specs
from oomdoctor.model.enums import Kind
from oomdoctor.rules.kinds import NUMERIC, Part, common_kind, describe, remedy
from oomdoctor.rules.patterns import fault_of

if TYPE_CHECKING:
    from oomdoctor.rules.language import Compiler

FUNCTIONS = ("min", "max", "abs", "ceil_to", "matches", "count", "present", "absent")
EXPECTED = (
    "expected literals, facts, units, + - * / //, one comparison, in, and/or/not, "
    f"and the functions {', '.join(FUNCTIONS)}"
)
_ARITY = {"abs": 1, "ceil_to": 2, "matches": 2, "count": 1, "present": 1, "absent": 1}


def call(compiler: Compiler, node: ast.Call) -> Part:
    """Compile a call of one of the eight functions."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS:
        raise compiler.problem(node, "a call of something else", EXPECTED)
    wanted = _ARITY.get(name)
    given = len(node.args)
    if node.keywords or (given < 2 if wanted is None else given != wanted):
        number = "two or more" if wanted is None else str(wanted)
        raise compiler.problem(
            node, f"{name}() with other arguments", f"expected {number} in order"
        )
    if name == "matches":
        return _matches(compiler, node)
    if name == "count":
        return _count(compiler, node)
    if name in ("present", "absent"):
        return _presence(compiler, name, node)
    return _numeric(compiler, name, node)


def _numeric(compiler: Compiler, name: str, node: ast.Call) -> Part:
    parts = [compiler.part(argument) for argument in node.args]
    kinds = {part.kind for part in parts}
    if Kind.BYTES in kinds:
        parts = [compiler.directed(part, Kind.BYTES) for part in parts]
    for part in parts:
        if part.kind not in NUMERIC or part.literal == "list":
            raise compiler.problem(part.node, f"{describe(part)} in {name}()", "expected a number")
    kind = common_kind(parts)
    if kind is None:
        odd = next(part for part in parts if part.kind is not parts[0].kind)
        what = f"{name}() of {describe(parts[0])} and {describe(odd)}"
        raise compiler.problem(odd.node, what, remedy(parts[0], odd))
    return compiler.calculated(name, parts, kind, node)


def _matches(compiler: Compiler, node: ast.Call) -> Part:
    text, pattern = (compiler.part(argument) for argument in node.args)
    if text.kind is not Kind.TEXT or not text.fact:
        raise compiler.problem(text.node, f"{describe(text)} in matches()", "expected a text fact")
    if pattern.literal != "string" or not pattern.tree:
        raise compiler.problem(
            pattern.node, f"{describe(pattern)} in matches()", "expected a pattern"
        )
    fault = fault_of(str(pattern.tree))
    if fault is not None:
        message, offset = fault
        start = len(compiler.source.encode()[: pattern.node.col_offset].decode())
        raise compiler.problem_at(start + 1 + offset, f"bad pattern: {message}", "expected a regex")
    return Part(tree=["matches", text.tree, pattern.tree], kind=Kind.BOOL, node=node)


def _count(compiler: Compiler, node: ast.Call) -> Part:
    text = compiler.part(node.args[0])
    if text.kind is not Kind.TEXT or not text.fact:
        raise compiler.problem(text.node, f"{describe(text)} in count()", "expected a text fact")
    return Part(tree=["count", text.tree], kind=Kind.COUNT, node=node)


def _presence(compiler: Compiler, name: str, node: ast.Call) -> Part:
    fact = compiler.part(node.args[0])
    spec = specs().get(fact.fact)
    if spec is None:
        raise compiler.problem(fact.node, f"{describe(fact)} in {name}()", "expected a fact key")
    if not spec.closed_by:
        raise compiler.problem(
            fact.node,
            f"{name}({fact.fact}) can never be known: no input is complete about it",
            "expected a fact that a parsed config closes (closed_by)",
        )
    tree = ["present", fact.tree]
    return Part(tree=tree if name == "present" else ["not", tree], kind=Kind.BOOL, node=node)
