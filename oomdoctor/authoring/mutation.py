"""Leaf mutation: a condition that can be replaced by true or false unnoticed is not tested."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from oomdoctor.authoring.selftest import gate_failures
from oomdoctor.model.enums import Kind
from oomdoctor.rules.nodes import Problem
from oomdoctor.rules.shape import Condition, Expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.authoring.selftest import Case
    from oomdoctor.errors import Location
    from oomdoctor.rules.shape import Evidence, Rule, Tree


class Mutant(NamedTuple):
    """A gate with one leaf (or operand of and/or/not in it) replaced by a constant."""

    shown: str
    value: bool
    when: Condition


def surviving_mutants(
    rule: Rule, cases: list[Case], places: Mapping[str, Location]
) -> Iterator[Problem]:
    """Yield a problem for each leaf of the gate, and evidence line, that no test notices."""
    for mutant in mutants_of(rule.when):
        mutated = replace(rule, when=mutant.when)
        if not any(True for case in cases for _ in gate_failures(mutated, case)):
            word, kind = ("true", "no_match") if mutant.value else ("false", "match")
            message = (
                f"no test notices when `{mutant.shown}` is replaced by {word}; "
                f"add a test that expects {kind} (or unknown) only because of it"
            )
            yield Problem(message=message, location=places["when"])
    for line in rule.evidence:
        yield from _unpinned(line, cases, places["evidence"])


def _unpinned(line: Evidence, cases: list[Case], place: Location) -> Iterator[Problem]:
    pinned = {case.test.evidence.get(line.label, "").lower() for case in cases}
    for word in ("true", "false"):
        if word not in pinned:
            message = f"no test pins `evidence: {{{line.label!r}: {word}}}`"
            yield Problem(message=message, location=place)


def mutants_of(condition: Condition) -> Iterator[Mutant]:
    """Yield all mutants of a condition."""
    if condition.leaf is not None:
        for shown, value, tree in _tree_mutants(condition.leaf.tree, condition.leaf):
            yield Mutant(shown, value, replace(condition, leaf=_with_tree(condition.leaf, tree)))
        return
    for index, part in enumerate(condition.parts):
        for shown, value, mutated in mutants_of(part):
            parts = (*condition.parts[:index], mutated, *condition.parts[index + 1 :])
            yield Mutant(shown, value, replace(condition, parts=parts))


def _tree_mutants(tree: Tree, leaf: Expression) -> Iterator[tuple[str, bool, Tree]]:
    head = tree[0]
    if head in ("and", "or", "not"):
        for index, part in enumerate(tree[1:], 1):
            if isinstance(part, list):
                for shown, value, mutated in _tree_mutants(part, leaf):
                    yield shown, value, [*tree[:index], mutated, *tree[index + 1 :]]
        return
    shown = leaf.source if tree is leaf.tree else f"{printed(tree)} in {leaf.source}"
    yield shown, True, ["value", True]
    yield shown, False, ["value", False]


def _with_tree(leaf: Expression, tree: Tree) -> Expression:
    return Expression(source=leaf.source, tree=tree, kind=Kind.BOOL, reads=leaf.reads)


def printed(tree: Tree | str | float) -> str:
    """Print a compiled tree roughly as it was written, to name a part of a leaf."""
    if not isinstance(tree, list):
        return repr(tree) if isinstance(tree, str) else str(tree).lower()
    head, *rest = tree
    if head in ("fact", "value"):
        return str(rest[0])
    shown = [printed(part) for part in rest]
    if isinstance(head, str) and not head[:1].isalpha() and len(shown) == 2:
        return f"{shown[0]} {head} {shown[1]}"
    return f"{head}({', '.join(shown)})"
