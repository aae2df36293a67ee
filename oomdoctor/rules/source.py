"""From the text of a rule file to a compiled rule, its inline tests, and all that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from oomdoctor.errors import Location, RuleError
from oomdoctor.model.enums import Kind, Maturity, Safety, Severity
from oomdoctor.record import dataclass
from oomdoctor.rules.language import compile_expression
from oomdoctor.rules.nodes import Problem, compose, data_of, entries, place
from oomdoctor.rules.schema import check_shape
from oomdoctor.rules.shape import Condition, Evidence, Fix, Rule, SavingFormula

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import yaml

    from oomdoctor.rules.nodes import Data
    from oomdoctor.rules.shape import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineTest:
    """A test that stands in a rule file; facts are texts, typed by the kind of their fact."""

    name: str
    expect: str
    probability: str | None = None
    missing: tuple[str, ...] = ()
    evidence: Mapping[str, str]
    facts: Mapping[str, str]
    log: str | None = None
    config: str | None = None
    closed: tuple[str, ...] = ()
    severity: str | None = None
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSource:
    """A rule file as read: the rule where it compiles, its tests, and every problem found."""

    path: str
    rule: Rule | None = None
    tests: tuple[InlineTest, ...] = ()
    problems: tuple[Problem, ...] = ()
    places: Mapping[str, Location]


def read_rule_file(path: Path) -> RuleSource:
    """Read and compile one rule file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem(message=f"cannot be read: {error}", location=Location(path=str(path)))
        return RuleSource(path=str(path), problems=(problem,), places={})
    return read_rule_text(text, path=str(path))


def read_rule_text(text: str, *, path: str = "<rule>") -> RuleSource:
    """Compile the text of a rule file; all problems of a stage are told at once."""
    root, problems = compose(text, path=path)
    if root is None or problems:
        return RuleSource(path=path, problems=problems, places={})
    places = {name: place(key, path) for name, (key, _) in entries(root).items()}
    problems = check_shape(root, path=path)
    if problems:
        return RuleSource(path=path, problems=problems, places=places)
    reader = _Reader(path)
    rule = reader.rule(root)
    tests = reader.tests(root)
    problems = tuple(reader.problems)
    return RuleSource(
        path=path,
        rule=None if problems else rule,
        tests=tests,
        problems=problems,
        places=places,
    )


class _Reader:
    """Builds a rule out of checked nodes; collects the problems of its expressions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def rule(self, root: yaml.Node) -> Rule | None:
        """Build the rule; None where its gate does not compile (the problem is kept)."""
        fields = _Fields(root)
        when = self.condition(fields.node("when"))
        evidence = tuple(self._evidence(item) for item in fields.items("evidence"))
        explains = self._optional_size(fields.node("explains"))
        fixes = tuple(self._fix(item) for item in fields.items("fixes"))
        if when is None or self.problems:
            return None
        return Rule(
            code=fields.text("code"),
            name=fields.text("name"),
            title=fields.text("title"),
            severity=Severity(fields.text("severity")),
            maturity=Maturity(fields.text("maturity")),
            since=fields.text("since"),
            when=when,
            cause=fields.optional("cause"),
            related=fields.texts("related"),
            says=fields.optional("says"),
            evidence=tuple(line for line in evidence if line),
            explains=explains,
            fixes=tuple(fix for fix in fixes if fix),
            why=fields.text("why"),
            known_problems=fields.text("known_problems"),
            references=fields.texts("references"),
            confirm=cast("dict[str, object]", fields.data("confirm") or {}),
            path=self.path,
            category=fields.optional("category"),
            basis=fields.optional("basis"),
            source=fields.optional("source"),
            breaks_from=fields.raw_table("breaks_from"),
            at=fields.texts("at"),
        )

    def condition(self, node: yaml.Node | None) -> Condition | None:
        """Compile a condition; None where there is none or a leaf is wrong."""
        if node is None:
            return None
        given = entries(node)
        if not given:
            leaf = self.expression(node, Kind.BOOL)
            return None if leaf is None else leaf_condition(leaf)
        ((op, (_, value)),) = given.items()
        inner = [value] if op == "not" else list(value.value)
        parts = [self.condition(item) for item in inner]
        kept = tuple(part for part in parts if part is not None)
        if len(kept) < len(parts):
            return None
        return Condition(op=op, parts=kept, heavy=any(part.heavy for part in kept))

    def expression(self, node: yaml.Node, expect: Kind) -> Expression | None:
        """Compile a leaf, or keep the problem with its place in the file."""
        text = str(data_of(node))
        try:
            return compile_expression(text, expect=expect)
        except RuleError as error:
            inner = error.location.column if error.location else None
            at = _inside(node, self.path, (inner or 1) - 1)
            self.problems.append(Problem(message=error.message, location=at))
            return None

    def _optional_size(self, node: yaml.Node | None) -> Expression | None:
        return None if node is None else self.expression(node, Kind.BYTES)

    def _evidence(self, node: yaml.Node) -> Evidence | None:
        fields = _Fields(node)
        condition = self.condition(fields.node("if"))
        if condition is None:
            return None
        seen = cast("dict[str, float]", fields.data("seen"))
        label = fields.optional("label") or (condition.leaf.source if condition.leaf else None)
        if label is None:
            message = "missing field 'label': a compound condition needs words"
            self.problems.append(Problem(message=message, location=place(node, self.path)))
        return Evidence(
            condition=condition,
            in_cause=float(seen["cause"]),
            otherwise=float(seen["otherwise"]),
            label=label or "",
            group=fields.optional("group"),
        )

    def _fix(self, node: yaml.Node) -> Fix | None:
        fields = _Fields(node)
        saves_node = fields.node("saves")
        saves = None if saves_node is None else self._saving(_Fields(saves_node))
        return Fix(
            id=fields.text("id"),
            title=fields.text("title"),
            safety=Safety(fields.text("safety")),
            needs=self.condition(fields.node("needs")),
            in_force=self.condition(fields.node("in_force")),
            time_factor=float(cast("float", fields.data("time_factor") or 1.0)),
            quality=fields.optional("quality") or "none",
            saves=saves,
            patch=cast("dict[str, dict[str, object]]", fields.data("patch") or {}),
            advice=fields.optional("advice"),
            cautions=fields.texts("cautions"),
        )

    def _saving(self, fields: _Fields) -> SavingFormula | None:
        low, likely, high = (
            self._optional_size(fields.node(name)) for name in ("low", "likely", "high")
        )
        if low is None or likely is None or high is None:
            return None
        return SavingFormula(low=low, likely=likely, high=high)

    def tests(self, root: yaml.Node) -> tuple[InlineTest, ...]:
        """Return the inline tests, scalars as written."""
        return tuple(_inline_test(item, self.path) for item in _Fields(root).items("tests"))


def _inside(node: yaml.Node, path: str, offset: int) -> Location:
    """Return the place `offset` characters into a scalar; its start where it spans lines."""
    at = place(node, path)
    style = getattr(node, "style", None) or ""
    if style in ("|", ">") or node.start_mark.line != node.end_mark.line:
        return at
    return Location(path=path, line=at.line, column=(at.column or 1) + offset + len(style))


def leaf_condition(leaf: Expression) -> Condition:
    """Return a condition that is one leaf."""
    return Condition(op="leaf", leaf=leaf, heavy=_searches(leaf.tree))


def _searches(tree: object) -> bool:
    if not isinstance(tree, list):
        return False
    return (bool(tree) and tree[0] == "matches") or any(_searches(part) for part in tree)


def _inline_test(node: yaml.Node, path: str) -> InlineTest:
    fields = _Fields(node)
    return InlineTest(
        name=fields.text("name"),
        expect=fields.text("expect"),
        probability=fields.optional("probability"),
        missing=fields.texts("missing"),
        evidence=fields.raw_table("evidence"),
        facts=fields.raw_table("facts"),
        log=fields.optional("log"),
        config=fields.optional("config"),
        closed=fields.texts("closed"),
        severity=fields.optional("severity"),
        location=place(node, path),
    )


class _Fields:
    """Typed access to a mapping node whose shape has been checked."""

    def __init__(self, node: yaml.Node) -> None:
        self._given = {name: value for name, (_, value) in entries(node).items()}

    def node(self, name: str) -> yaml.Node | None:
        return self._given.get(name)

    def items(self, name: str) -> list[yaml.Node]:
        node = self._given.get(name)
        return [] if node is None else list(node.value)

    def data(self, name: str) -> Data:
        node = self._given.get(name)
        return None if node is None else data_of(node)

    def text(self, name: str) -> str:
        return str(self.data(name)).strip()

    def optional(self, name: str) -> str | None:
        return self.text(name) if name in self._given else None

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(str(data_of(node)).strip() for node in self.items(name))

    def raw_table(self, name: str) -> dict[str, str]:
        node = self._given.get(name)
        table = {} if node is None else data_of(node, raw=True)
        return {key: str(value) for key, value in table.items()} if isinstance(table, dict) else {}
