"""Which kinds go together: the type rules of the language, and what to say where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Kind
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    import ast

    from oomdoctor.rules.shape import Tree

PLAIN = frozenset({Kind.COUNT, Kind.RATIO})
MEASURED = frozenset({Kind.BYTES, Kind.SECONDS})
NUMERIC = PLAIN | MEASURED
WORDS = frozenset({Kind.TEXT, Kind.ENUM, Kind.VERSION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A compiled piece of an expression: its tree, kind, place, and what may direct its type.

    `literal` is "string", "number", "list" or "" (not a literal); a literal string takes its
    meaning from the other side (a size, a version, a choice). `fact` is the key of a bare fact.
    """

    tree: Tree | str | int | float | bool
    kind: Kind
    node: ast.expr
    literal: str = ""
    fact: str = ""


def describe(part: Part) -> str:
    """Name a part for a message: `oom.free (bytes)`, `the number 3`, `a count`."""
    if part.literal == "string":
        return f"the string {part.tree!r}"
    if part.literal == "number":
        return f"the bare number {part.tree}"
    if part.literal == "list":
        return "a list"
    return f"{part.fact} ({part.kind.value})" if part.fact else f"a value of kind {part.kind.value}"


def arithmetic_kind(op: str, left: Kind, right: Kind) -> Kind | None:
    """Return the kind of `left op right`, or None where they do not go together."""
    if left not in NUMERIC or right not in NUMERIC:
        return None
    if left in PLAIN and right in PLAIN:
        return _plain_kind(op, left, right)
    if op in ("+", "-"):
        return left if left is right else None
    if op == "*":
        return _scaled_kind(left, right)
    return _quotient_kind(op, left, right)


def _plain_kind(op: str, left: Kind, right: Kind) -> Kind:
    if op == "//":
        return Kind.COUNT
    return Kind.RATIO if op == "/" or Kind.RATIO in (left, right) else Kind.COUNT


def _scaled_kind(left: Kind, right: Kind) -> Kind | None:
    """Return the measure that a plain number scales: two measures have no product."""
    if left in PLAIN:
        return right
    return left if right in PLAIN else None


def _quotient_kind(op: str, left: Kind, right: Kind) -> Kind | None:
    if right in PLAIN:
        return left
    if left is not right:
        return None
    return Kind.RATIO if op == "/" else Kind.COUNT


def common_kind(parts: list[Part]) -> Kind | None:
    """Return the kind that all numeric `parts` share (count and ratio mix to ratio), or None."""
    kinds = {part.kind for part in parts}
    if len(kinds) == 1:
        (kind,) = kinds
        return kind if kind in NUMERIC else None
    return Kind.RATIO if kinds <= PLAIN else None


def comparable(left: Part, right: Part) -> bool:
    """Say whether two numeric parts may be compared: the same measure, or both without one.

    Seconds have no unit constant, so a bare number stands for seconds.
    """
    if left.kind not in NUMERIC or right.kind not in NUMERIC:
        return False
    if Kind.SECONDS in (left.kind, right.kind):
        return left.kind is right.kind or "number" in (left.literal, right.literal)
    return left.kind is right.kind or {left.kind, right.kind} <= PLAIN


def remedy(left: Part, right: Part) -> str:
    """Say what was expected where two parts do not go together."""
    kinds = {left.kind, right.kind}
    if Kind.BYTES in kinds and "number" in (left.literal, right.literal):
        return "expected a size: write 3*GiB, '3 GiB' or 0*B, not a bare number"
    if kinds == {Kind.BYTES}:
        return "expected bytes with a count or ratio: bytes times bytes is no size"
    if Kind.BYTES in kinds:
        return "expected bytes on both sides (bytes * count and bytes * ratio are bytes)"
    if Kind.BOOL in kinds:
        return "expected two truth values: a bool fact stands alone or is compared with true/false"
    return "expected the same kind on both sides"
