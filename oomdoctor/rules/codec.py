"""Compiled rules to plain JSON values and back; fixes are decoded when they are first looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from oomdoctor.model.enums import Kind, Maturity, Safety, Severity
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
_CAUSE_TEXTS = ("id", "resource", "definition", "tells_apart", "prior_reason")


class LazyFixes(Sequence[Fix]):
    """The fixes of a rule as JSON text, decoded on first use: few rules come that far."""

    __slots__ = ("_fixes", "_text")

    def __init__(self, text: str) -> None:
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


def encode_rule(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON values, without its fixes (and its inline tests)."""
    return {
        **{name: getattr(rule, name) for name in _TEXTS},
        "severity": rule.severity.value,
        "maturity": rule.maturity.value,
        "related": list(rule.related),
        "references": list(rule.references),
        "confirm": dict(rule.confirm),
        "when": _encode_condition(rule.when),
        "evidence": [
            [
                _encode_condition(line.condition),
                line.in_cause,
                line.otherwise,
                line.label,
                line.group,
            ]
            for line in rule.evidence
        ],
        "explains": rule.explains and _encode_expression(rule.explains),
    }


def encode_fixes(rule: Rule) -> list[Any]:
    """Return the fixes of a rule as JSON values; they are stored apart."""
    return [_encode_fix(fix) for fix in rule.fixes]


def decode_rule(value: Mapping[str, Any], fixes: str) -> Rule:
    """Return the rule that `encode_rule` encoded; `fixes` is the JSON text of its fixes."""
    return Rule(
        **{name: value[name] for name in _TEXTS},
        severity=Severity(value["severity"]),
        maturity=Maturity(value["maturity"]),
        related=tuple(value["related"]),
        references=tuple(value["references"]),
        confirm=value["confirm"],
        when=_condition(value["when"]),
        evidence=tuple(
            Evidence(
                condition=_condition(condition),
                in_cause=in_cause,
                otherwise=otherwise,
                label=label,
                group=group,
            )
            for condition, in_cause, otherwise, label, group in value["evidence"]
        ),
        explains=value["explains"] and _expression(value["explains"]),
        fixes=LazyFixes(fixes),
    )


def encode_cause(cause: Cause) -> dict[str, Any]:
    """Return a cause as JSON values."""
    texts = {name: getattr(cause, name) for name in _CAUSE_TEXTS}
    return {**texts, "near": list(cause.near), "prior": cause.prior}


def decode_cause(value: Mapping[str, Any]) -> Cause:
    """Return the cause that `encode_cause` encoded."""
    texts = {name: value[name] for name in _CAUSE_TEXTS}
    return Cause(**texts, near=tuple(value["near"]), prior=value["prior"])


def _encode_expression(expression: Expression) -> list[Any]:
    reads = sorted(expression.reads)
    return [expression.source, expression.tree, expression.kind.value, reads]


def _expression(value: list[Any]) -> Expression:
    source, tree, kind, reads = value
    return Expression(source=source, tree=tree, kind=Kind(kind), reads=frozenset(reads))


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
        "patch": {dialect: dict(settings) for dialect, settings in fix.patch.items()},
        "advice": fix.advice,
        "cautions": list(fix.cautions),
    }


def _fix(value: Mapping[str, Any]) -> Fix:
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
