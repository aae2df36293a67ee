"""Comparisons and membership of the rule language: what may stand on either side, and its tree."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.facts.registry import specs
from oomdoctor.model.enums import Kind
from oomdoctor.rules.kinds import NUMERIC, WORDS, Part, comparable, describe, remedy
from oomdoctor.rules.versions import parse_range, version_key

if TYPE_CHECKING:
    from oomdoctor.rules.language import Compiler
    from oomdoctor.rules.shape import Tree

ORDERINGS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def compare(compiler: Compiler, node: ast.Compare) -> Part:
    """Compile one comparison; chains are refused because unknown values make them unclear."""
    if len(node.ops) > 1:
        raise compiler.problem(
            node.comparators[1], "a chain of comparisons", "expected one; join two with `and`"
        )
    left, right = compiler.part(node.left), compiler.part(node.comparators[0])
    operator = node.ops[0]
    if isinstance(operator, (ast.In, ast.NotIn)):
        tree = _membership(compiler, left, right)
        tree = ["not", tree] if isinstance(operator, ast.NotIn) else tree
        return Part(tree=tree, kind=Kind.BOOL, node=node)
    op = ORDERINGS.get(type(operator))
    if op is None:
        raise compiler.problem(node, "`is` is not part of the language", "expected == or !=")
    if "list" in (left.literal, right.literal):
        raise compiler.problem(node, "a list cannot be compared", "expected `in` before a list")
    left, right = compiler.directed(left, right.kind), compiler.directed(right, left.kind)
    tree = _ordering(compiler, op, left, right)
    return Part(tree=tree, kind=Kind.BOOL, node=node)


def _ordering(compiler: Compiler, op: str, left: Part, right: Part) -> Tree:
    if comparable(left, right):
        return [op, left.tree, right.tree]
    if left.kind in WORDS and right.kind in WORDS:
        return _word_comparison(compiler, op, left, right)
    if left.kind is Kind.BOOL and right.kind is Kind.BOOL:
        _require_equality(compiler, op, right)
        same = ["iff", left.tree, right.tree]
        return same if op == "==" else ["not", same]
    what = f"cannot compare {describe(left)} with {describe(right)}"
    raise compiler.problem(right.node, what, remedy(left, right))


def _word_comparison(compiler: Compiler, op: str, left: Part, right: Part) -> Tree:
    if Kind.VERSION in (left.kind, right.kind):
        for part in (left, right):
            if part.kind is not Kind.VERSION:
                _require_version(compiler, part)
        return [f"version{op}", left.tree, right.tree]
    _require_equality(compiler, op, right)
    for one, other in ((left, right), (right, left)):
        if one.kind is Kind.ENUM and other.literal == "string":
            _require_choice(compiler, one, str(other.tree), other.node)
    same = ["same", left.tree, right.tree]
    return same if op == "==" else ["not", same]


def _membership(compiler: Compiler, item: Part, group: Part) -> Tree:
    if item.kind is Kind.VERSION and group.literal == "string":
        if parse_range(str(group.tree)) is None:
            raise compiler.problem(
                group.node,
                f"{group.tree!r} is no version range",
                "expected bounds such as '>=2.1,<2.4'",
            )
        return ["in_range", item.tree, group.tree]
    if group.literal != "list" or not isinstance(group.tree, list):
        expected = "expected a list, such as in ['a', 'b'] (a range string after a version)"
        raise compiler.problem(group.node, f"{describe(group)} after `in`", expected)
    strings = [value for value in group.tree if isinstance(value, str)]
    if item.kind in NUMERIC and item.kind is not Kind.BYTES and not strings:
        return ["or", *(["==", item.tree, value] for value in group.tree)]
    if item.kind not in (Kind.ENUM, Kind.TEXT) or len(strings) < len(group.tree):
        expected = "expected an enum or text fact in a list of strings"
        raise compiler.problem(item.node, f"{describe(item)} before `in`", expected)
    if item.kind is Kind.ENUM and isinstance(group.node, ast.List):
        for value, node in zip(strings, group.node.elts, strict=True):
            _require_choice(compiler, item, value, node)
    return ["one_of", item.tree, *strings]


def _require_equality(compiler: Compiler, op: str, part: Part) -> None:
    if op not in ("==", "!="):
        raise compiler.problem(part.node, f"{describe(part)} has no order", "expected == or !=")


def _require_version(compiler: Compiler, part: Part) -> None:
    if part.literal != "string" or version_key(str(part.tree)) is None:
        raise compiler.problem(
            part.node, f"{describe(part)} is no version", "expected a version such as '2.3'"
        )


def _require_choice(compiler: Compiler, fact: Part, value: str, node: ast.expr) -> None:
    """Refuse a word that the enum fact can never be."""
    spec = specs().get(fact.fact)
    if spec is None or value in spec.choices:
        return
    from difflib import get_close_matches

    near = get_close_matches(value, spec.choices, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    choices = ", ".join(spec.choices)
    raise compiler.problem(
        node, f"{fact.fact} is never {value!r}", f"{hint}expected one of {choices}"
    )
