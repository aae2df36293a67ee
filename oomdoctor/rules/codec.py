"""Compiled rules to plain JSON values and back.

Leaves are stored once however many rules ask them, and a condition that is one leaf is its number;
fixes are decoded when they are first looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from oomdoctor.model.enums import Kind, Maturity, Safety, Severity
from oomdoctor.rules import settings
from oomdoctor.rules.shape import (
    Cause,
    Condition,
    Evidence,
    Expression,
    Fix,
    Rule,
    SavingFormula,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS = ("code", "name", "cause", "title", "since", "says", "why", "known_problems", "path")
_LINT = ("category", "basis", "source", "breaks_from", "at")
_KINDS = {kind.value: kind for kind in Kind}
_CAUSE_TEXTS = ("id", "resource", "definition", "tells_apart", "prior_reason")


class LazyFixes(Sequence[Fix]):
    """The fixes of a rule as JSON text, decoded on first use: few rules come that far."""

    __slots__ = ("_fixes", "_text")

    def __init__(self, text: bytes) -> None:
        """Keep the JSON text of the fixes."""
        self._text = text
        self._fixes: tuple[Fix, ...] | None = None

    def decoded(self) -> tuple[Fix, ...]:
        """Return all fixes."""
        if self._fixes is None:
            self._fixes = tuple(_fix(value) for value in json.loads(self._text))
        return self._fixes

    @overload
    def __getitem__(self, index: int) -> Fix: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fix, ...]: ...
    def __getitem__(self, index: int | slice) -> Fix | tuple[Fix, ...]:
        """Return one fix or several."""
        return self.decoded()[index]

    def __len__(self) -> int:
        """Return how many fixes there are."""
        return len(self.decoded())

    def __eq__(self, other: object) -> bool:
        """Compare with any other sequence of fixes."""
        return isinstance(other, Sequence) and self.decoded() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the fixes as a tuple."""
        return hash(self.decoded())


class Encoder:
    """Turns rules into JSON values and collects their leaves, each once."""

    def __init__(self) -> None:
        """Start without leaves."""
        self.leaves: list[list[Any]] = []
        self._numbers: dict[str, int] = {}

    def rule(self, rule: Rule) -> dict[str, Any]:
        """Return a rule as JSON values, without its fixes (and its inline tests)."""
        return {
            **{name: getattr(rule, name) for name in _TEXTS},
            "severity": rule.severity.value,
            "maturity": rule.maturity.value,
            "related": list(rule.related),
            "references": list(rule.references),
            "confirm": dict(rule.confirm),
            "when": self._condition(rule.when),
            "evidence": [
                [
                    self._condition(line.condition),
                    line.in_cause,
                    line.otherwise,
                    line.label,
                    line.group,
                ]
                for line in rule.evidence
            ],
            "explains": rule.explains and _encode_expression(rule.explains),
            **_encode_lint(rule),
        }

    def _condition(self, condition: Condition) -> int | list[Any]:
        if condition.leaf is None:
            parts = [self._condition(part) for part in condition.parts]
            return [condition.op, parts, condition.heavy]
        leaf = [*_encode_expression(condition.leaf), condition.heavy]
        number = self._numbers.setdefault(json.dumps(leaf), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(leaf)
        return number


class Decoder:
    """Turns JSON values into rules, whose equal leaves are one object."""

    def __init__(self, leaves: Sequence[list[Any]]) -> None:
        """Take the leaves that conditions name by number."""
        self._leaves = [
            Condition(op="leaf", leaf=_expression(leaf[:4]), heavy=leaf[4]) for leaf in leaves
        ]

    def rule(self, value: Mapping[str, Any], fixes: bytes) -> Rule:
        """Return the rule that was encoded; `fixes` is the JSON text of its fixes."""
        return Rule(
            **{name: value[name] for name in _TEXTS},
            severity=Severity(value["severity"]),
            maturity=Maturity(value["maturity"]),
            related=tuple(value["related"]),
            references=tuple(value["references"]),
            confirm=value["confirm"],
            when=self._condition(value["when"]),
            evidence=tuple(
                Evidence(
                    condition=self._condition(condition),
                    in_cause=in_cause,
                    otherwise=otherwise,
                    label=label,
                    group=group,
                )
                for condition, in_cause, otherwise, label, group in value["evidence"]
            ),
            explains=value["explains"] and _expression(value["explains"]),
            fixes=LazyFixes(fixes),
            **_lint(value),
        )

    def _condition(self, value: int | list[Any]) -> Condition:
        """Return the condition of a number, or of a list of its parts."""
        if isinstance(value, int):
            return self._leaves[value]
        op, parts, heavy = value
        return Condition(op=op, parts=tuple(self._condition(part) for part in parts), heavy=heavy)


def _encode_lint(rule: Rule) -> dict[str, Any]:
    """Return the fields of lint rules as far as they are used."""
    given: dict[str, Any] = {name: getattr(rule, name) for name in _LINT}
    given = {**given, "breaks_from": dict(rule.breaks_from), "at": list(rule.at)}
    return {name: value for name, value in given.items() if value}


def _lint(value: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value[name] for name in _LINT if name in value}
    return {**given, "at": tuple(given["at"])} if "at" in given else given


def encode_fixes(rule: Rule) -> list[Any]:
    """Return the fixes of a rule as JSON values; they are stored apart."""
    return [_encode_fix(fix) for fix in rule.fixes]


def encode_cause(cause: Cause) -> dict[str, Any]:
    """Return a cause as JSON values."""
    texts = {name: getattr(cause, name) for name in _CAUSE_TEXTS}
    trains = {"training": True} if cause.training else {}
    return {**texts, "near": list(cause.near), "prior": cause.prior, **trains}


def decode_cause(value: Mapping[str, Any]) -> Cause:
    """Return the cause that `encode_cause` encoded."""
    texts = {name: value[name] for name in _CAUSE_TEXTS}
    training = bool(value.get("training"))
    return Cause(**texts, near=tuple(value["near"]), training=training, prior=value["prior"])


def _encode_expression(expression: Expression) -> list[Any]:
    reads = sorted(expression.reads)
    return [expression.source, expression.tree, expression.kind.value, reads]


def _expression(value: list[Any]) -> Expression:
    source, tree, kind, reads = value
    return Expression(source=source, tree=tree, kind=_KINDS[kind], reads=frozenset(reads))


def _encode_condition(condition: Condition) -> list[Any]:
    leaf = condition.leaf and _encode_expression(condition.leaf)
    parts = [_encode_condition(part) for part in condition.parts]
    return [condition.op, leaf, parts, condition.heavy]


def _condition(value: list[Any]) -> Condition:
    op, leaf, parts, heavy = value
    return Condition(
        op=op,
        leaf=leaf and _expression(leaf),
        parts=tuple(_condition(part) for part in parts),
        heavy=heavy,
    )


def _encode_fix(fix: Fix) -> dict[str, Any]:
    saves = fix.saves
    return {
        "id": fix.id,
        "title": fix.title,
        "safety": fix.safety.value,
        "needs": fix.needs and _encode_condition(fix.needs),
        "in_force": fix.in_force and _encode_condition(fix.in_force),
        "time_factor": fix.time_factor,
        "quality": fix.quality,
        "saves": saves
        and [_encode_expression(part) for part in (saves.low, saves.likely, saves.high)],
        "patch": {dialect: dict(keys) for dialect, keys in fix.patch.items()},
        "expressions": {
            text: _encode_expression(expression)
            for text, expression in settings.expressions_in(fix.patch)
        },
        "advice": fix.advice,
        "cautions": list(fix.cautions),
    }


def _fix(value: Mapping[str, Any]) -> Fix:
    compiled = value["expressions"].items()
    settings.learn({text: _expression(expression) for text, expression in compiled})
    return Fix(
        id=value["id"],
        title=value["title"],
        safety=Safety(value["safety"]),
        needs=value["needs"] and _condition(value["needs"]),
        in_force=value["in_force"] and _condition(value["in_force"]),
        time_factor=value["time_factor"],
        quality=value["quality"],
        saves=value["saves"] and _saving(value["saves"]),
        patch=value["patch"],
        advice=value["advice"],
        cautions=tuple(value["cautions"]),
    )


def _saving(value: list[Any]) -> SavingFormula:
    low, likely, high = (_expression(part) for part in value)
    return SavingFormula(low=low, likely=likely, high=high)
