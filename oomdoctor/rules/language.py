r"""The expression language of rules: a typed subset of Python's expressions, compiled to lists.

    torch.reserved_unallocated >= oom.requested and not alloc.expandable_segments
    env.torch in '>=2.1,<2.4'                       run.phase in ['forward', 'loss']
    matches(trace.stack, 'cross_entropy|\.float\(')  oom.requested > 0.1 * oom.capacity

Strings are raw: a backslash is a backslash. Nothing is ever executed.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from oomdoctor.errors import Location, RuleError
from oomdoctor.facts.registry import did_you_mean, specs
from oomdoctor.model.enums import Kind
from oomdoctor.rules import calls, comparisons
from oomdoctor.rules.kinds import NUMERIC, PLAIN, Part, arithmetic_kind, describe, remedy
from oomdoctor.rules.numbers import Rounded, calculate
from oomdoctor.rules.shape import Expression
from oomdoctor.units import parse_size, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from oomdoctor.rules.shape import Tree

MAX_CHARS = 200
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//"}
_BACKSLASH = "\x01"
_LOGIC = frozenset({"and", "or", "not", "in", "is", "if", "else", "lambda", "for", "await"})


def compile_expression(source: str, *, expect: Kind | None = None) -> Expression:
    """Compile one expression; a RuleError shows the source, a caret and what was expected."""
    compiler = Compiler(source)
    part = compiler.compile()
    part = compiler.directed(part, expect)
    if expect is not None and part.kind is not expect and {part.kind, expect} != PLAIN:
        raise compiler.problem(
            part.node,
            f"{describe(part)} stands here",
            f"expected an expression of kind {expect.value}",
        )
    tree: Tree = part.tree if isinstance(part.tree, list) else ["value", part.tree]
    return Expression(
        source=compiler.source, tree=tree, kind=part.kind, reads=frozenset(facts_of(tree))
    )


def facts_of(tree: Tree | str | float) -> Iterator[str]:
    """Yield the fact keys that a compiled tree reads, in order of appearance."""
    if isinstance(tree, list):
        if tree and tree[0] == "fact":
            yield str(tree[1])
        else:
            for part in tree:
                yield from facts_of(part)


@cache
def _hidden_words() -> re.Pattern[str]:
    """Match strings (kept), and Python keywords that are part of a fact key (to be disguised)."""
    words = "|".join(word for word in keyword.kwlist if word.islower() and word not in _LOGIC)
    return re.compile(rf"'[^']*'|\"[^\"]*\"|(?<![\w.])(?:{words})(?=\.)|(?<=\.)(?:{words})(?!\w)")


class Compiler:
    """Compiles one source; holds it so that every error can point into it."""

    def __init__(self, source: str) -> None:
        """Store the source with line feeds as blanks (a folded YAML text is one line)."""
        self.source = source.strip().replace("\n", " ").replace("\t", " ")

    def compile(self) -> Part:
        """Parse and type-check the whole source."""
        if len(self.source) > MAX_CHARS:
            raise self.problem_at(
                MAX_CHARS,
                f"the expression has {len(self.source)} characters",
                f"expected at most {MAX_CHARS}: split it into leaves of all/any",
            )
        if not self.source or not self.source.isprintable():
            raise self.problem_at(
                0, "no printable expression", "expected something like oom.free < 1*GiB"
            )
        try:
            tree = ast.parse(self._disguised(), mode="eval")
        except SyntaxError as error:
            column = error.offset - 1 if error.offset else len(self.source)
            raise self.problem_at(
                column, f"syntax error: {error.msg}", "expected a Python-like expression"
            ) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise self.problem_at(
                0, f"cannot be parsed: {error}", "expected a simpler expression"
            ) from None
        return self.part(tree.body)

    def part(self, node: ast.expr) -> Part:
        """Compile one node by its type; everything off the whitelist is refused."""
        compile_node = _COMPILERS.get(type(node))
        if compile_node is None:
            name = type(node).__name__
            raise self.problem(node, f"{name} is not part of the language", calls.EXPECTED)
        return compile_node(self, node)

    def truth(self, node: ast.expr) -> Part:
        """Compile a node that must be true or false."""
        part = self.part(node)
        if part.kind is not Kind.BOOL:
            raise self.problem(
                node, f"{describe(part)} is not true or false", "expected a condition"
            )
        return part

    def directed(self, part: Part, kind: Kind | None) -> Part:
        """Give a literal string the meaning that `kind` asks for: '1.5 GiB' is a size for bytes."""
        if part.literal != "string" or kind is not Kind.BYTES:
            return part
        size = parse_size(str(part.tree))
        if size is None:
            raise self.problem(
                part.node, f"{part.tree!r} is no size", "expected a size such as '1.5 GiB'"
            )
        return Part(tree=size.bytes, kind=Kind.BYTES, node=part.node)

    def problem(self, node: ast.expr, what: str, expected: str) -> RuleError:
        """Return an error that points at a node (its offset counts UTF-8 bytes)."""
        column = len(self.source.encode()[: node.col_offset].decode(errors="replace"))
        return self.problem_at(column, what, expected)

    def problem_at(self, column: int, what: str, expected: str) -> RuleError:
        """Return an error that points at a 0-based column."""
        return RuleError(
            f"{what}; {expected}\n    {self.source}\n    {' ' * column}^",
            location=Location(path="expression", line=1, column=column + 1),
        )

    def _disguised(self) -> str:
        """Return the source, of the same length, with raw strings and no keywords in fact keys."""

        def hide(found: re.Match[str]) -> str:
            return found[0] if found[0][0] in "'\"" else found[0].capitalize()

        return _hidden_words().sub(hide, self.source).replace("\\", _BACKSLASH)

    def of_constant(self, node: ast.Constant) -> Part:
        """Compile a literal."""
        value = node.value
        if isinstance(value, bool):
            return Part(tree=value, kind=Kind.BOOL, node=node)
        if isinstance(value, str):
            text = value.replace(_BACKSLASH, "\\")
            return Part(tree=text, kind=Kind.TEXT, node=node, literal="string")
        if isinstance(value, (int, float)) and math.isfinite(value):
            kind = Kind.COUNT if isinstance(value, int) else Kind.RATIO
            return Part(tree=value, kind=kind, node=node, literal="number")
        raise self.problem(
            node, f"{value!r} is not part of the language", "expected a finite number"
        )

    def of_name(self, node: ast.expr) -> Part:
        """Compile a fact key, a unit, true or false."""
        key = self.dotted(node)
        if key in ("true", "false"):
            return Part(tree=key == "true", kind=Kind.BOOL, node=node)
        if key in UNITS:
            return Part(tree=unit_bytes(key) or 1, kind=Kind.BYTES, node=node)
        spec = specs().get(key)
        if spec is None:
            units = f" (units are {', '.join(UNITS)})" if "." not in key else ""
            raise self.problem(
                node, f"unknown fact {key!r}", f"expected a fact key; {did_you_mean(key)}{units}"
            )
        return Part(tree=["fact", key], kind=spec.kind, node=node, fact=key)

    def dotted(self, node: ast.expr) -> str:
        """Return the dotted name that a chain of attributes spells."""
        match node:
            case ast.Name(id=name):
                word = name
            case ast.Attribute(value=inner, attr=name):
                return f"{self.dotted(inner)}.{_shown(name)}"
            case _:
                raise self.problem(
                    node, "an attribute of a value", "expected a fact key such as oom.free"
                )
        return _shown(word)

    def of_list(self, node: ast.List) -> Part:
        """Compile a list of literals."""
        parts = [self.part(item) for item in node.elts]
        if not parts or any(part.literal not in ("string", "number") for part in parts):
            raise self.problem(
                node, "a list of something else", "expected a list of strings or numbers"
            )
        return Part(
            tree=[part.tree for part in parts], kind=parts[0].kind, node=node, literal="list"
        )

    def of_logic(self, node: ast.BoolOp) -> Part:
        """Compile `and` or `or`."""
        head = "and" if isinstance(node.op, ast.And) else "or"
        parts = [self.truth(value).tree for value in node.values]
        return Part(tree=[head, *parts], kind=Kind.BOOL, node=node)

    def of_compare(self, node: ast.Compare) -> Part:
        """Compile a comparison."""
        return comparisons.compare(self, node)

    def of_call(self, node: ast.Call) -> Part:
        """Compile a call."""
        return calls.call(self, node)

    def of_arithmetic(self, node: ast.BinOp) -> Part:
        """Compile an arithmetic operation."""
        op = OPERATORS.get(type(node.op))
        if op is None:
            raise self.problem(node, "an unknown operator", "expected one of + - * / //")
        left, right = self.part(node.left), self.part(node.right)
        if op in ("+", "-"):
            left, right = self.directed(left, right.kind), self.directed(right, left.kind)
        kind = arithmetic_kind(op, left.kind, right.kind)
        if kind is None or "list" in (left.literal, right.literal):
            what = f"cannot calculate {describe(left)} {op} {describe(right)}"
            raise self.problem(node.right, what, remedy(left, right))
        return self.calculated(op, [left, right], kind, node)

    def of_unary(self, node: ast.UnaryOp) -> Part:
        """Compile a minus or `not`."""
        if isinstance(node.op, ast.Not):
            return Part(tree=["not", self.truth(node.operand).tree], kind=Kind.BOOL, node=node)
        if not isinstance(node.op, ast.USub):
            raise self.problem(node, "an unknown sign", "expected `-` or `not`")
        part = self.part(node.operand)
        if part.kind not in NUMERIC or part.literal == "list":
            raise self.problem(
                node, f"{describe(part)} has no negative", "expected a number after the minus"
            )
        if part.literal == "number" and isinstance(part.tree, (int, float)):
            return Part(tree=-part.tree, kind=part.kind, node=node, literal="number")
        return self.calculated(
            "*", [Part(tree=-1, kind=Kind.COUNT, node=node), part], part.kind, node
        )

    def calculated(self, op: str, parts: list[Part], kind: Kind, node: ast.expr) -> Part:
        """Return the node of an operation; one of constants alone is calculated here and now."""
        numbers = [Rounded(p.tree) for p in parts if isinstance(p.tree, (int, float))]
        if len(numbers) < len(parts):
            return Part(tree=[op, *(part.tree for part in parts)], kind=kind, node=node)
        result = calculate(op, numbers)
        if result is None:
            raise self.problem(
                node, "the result does not exist", "expected no division by zero or overflow"
            )
        value = round(result.value) if kind in (Kind.BYTES, Kind.COUNT) else result.value
        literal = "number" if all(part.literal == "number" for part in parts) else ""
        return Part(tree=value, kind=kind, node=node, literal=literal)


def _shown(word: str) -> str:
    """Undo the disguise of a keyword inside a fact key."""
    lower = word.lower()
    disguised = word == lower.capitalize() and lower in keyword.kwlist
    return lower if disguised and word not in keyword.kwlist else word


_COMPILERS: Mapping[type[ast.expr], Callable[[Compiler, Any], Part]] = {
    ast.Constant: Compiler.of_constant,
    ast.Name: Compiler.of_name,
    ast.Attribute: Compiler.of_name,
    ast.List: Compiler.of_list,
    ast.BinOp: Compiler.of_arithmetic,
    ast.UnaryOp: Compiler.of_unary,
    ast.BoolOp: Compiler.of_logic,
    ast.Compare: Compiler.of_compare,
    ast.Call: Compiler.of_call,
}
