"""Evaluate compiled rules on a book of facts: conditions, values, gates, weights, all rules."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from oomdoctor.model.core import RuleFault, RuleResult, Verdict, Weight
from oomdoctor.model.enums import Kind, Truth
from oomdoctor.record import replace
from oomdoctor.rules.leaves import amount, leaf_verdict, timed_out_patterns
from oomdoctor.rules.truth import combine, negate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Quote, Value
    from oomdoctor.rules.shape import Condition, Evidence, Expression, Rule, RuleSet


T = TypeVar("T")


def condition_verdict(
    condition: Condition, book: FactBook, known: dict[int, Verdict] | None = None
) -> Verdict:
    """Evaluate a condition: Kleene logic, with the facts that could still change the answer.

    `known` keeps the verdicts on leaves that many rules share, by `id`, for one book.
    """
    if condition.leaf is not None:
        if known is None:
            return leaf_verdict(condition.leaf.tree, book)
        held = known.get(id(condition.leaf))
        if held is None:
            held = known[id(condition.leaf)] = leaf_verdict(condition.leaf.tree, book)
        return held
    if condition.op == "not":
        return negate(condition_verdict(condition.parts[0], book, known))
    absorbing = Truth.FALSE if condition.op == "all" else Truth.TRUE
    verdicts = []
    for heavy in (False, True):
        verdicts += [
            condition_verdict(part, book, known) for part in condition.parts if part.heavy is heavy
        ]
        if any(verdict.truth is absorbing for verdict in verdicts):
            break  # cheap parts decide already: no pattern needs to be searched
    return combine(verdicts, absorbing=absorbing)


def expression_value(expression: Expression, book: FactBook) -> tuple[Value | None, Verdict]:
    """Return an expression's value, or None with a verdict whose `missing` says what it lacks.

    The verdict of a known value is TRUE and quotes the facts it was calculated from.
    """
    tree = expression.tree
    if expression.kind is Kind.BOOL:
        verdict = leaf_verdict(tree, book)
        known = {Truth.TRUE: True, Truth.FALSE: False}.get(verdict.truth)
        return known, replace(verdict, truth=Truth.UNKNOWN if known is None else Truth.TRUE)
    missing: set[str] = set()
    value: Value | None
    if expression.kind in (Kind.TEXT, Kind.ENUM, Kind.VERSION):
        head, argument = tree[0], tree[1]
        value = book.value(str(argument)) if head == "fact" else str(argument)
        if value is None:
            missing.add(str(argument))
    else:
        result = amount(tree, book, missing)
        whole = expression.kind in (Kind.BYTES, Kind.COUNT)
        value = None if result is None else round(result.value) if whole else result.value
    truth = Truth.UNKNOWN if value is None else Truth.TRUE
    return value, Verdict(
        truth=truth,
        read=expression.reads,
        missing=frozenset(missing),
        quotes=() if value is None else _quotes(expression, book),
    )


def _quotes(expression: Expression, book: FactBook) -> tuple[Quote, ...]:
    facts = (book.get(key) for key in sorted(expression.reads))
    return tuple(dict.fromkeys(quote for fact in facts if fact for quote in fact.quotes))


def gate(rule: Rule, book: FactBook) -> Verdict:
    """Evaluate a rule's `when`: FALSE rules it out, UNKNOWN keeps it in, marked."""
    return condition_verdict(rule.when, book)


def nats(line: Evidence, truth: Truth) -> float:
    """Return what an evidence line adds to the log odds of its cause, given its truth."""
    match truth:
        case Truth.TRUE:
            return math.log(line.in_cause / line.otherwise)
        case Truth.FALSE:
            return math.log((1 - line.in_cause) / (1 - line.otherwise))
        case Truth.UNKNOWN:
            return 0.0


def weigh(
    rule: Rule, book: FactBook, known: dict[int, Verdict] | None = None
) -> tuple[Weight, ...]:
    """Weigh all evidence lines; of each group only the strongest one counts."""
    verdicts = [condition_verdict(line.condition, book, known) for line in rule.evidence]
    values = [nats(*pair) for pair in zip(rule.evidence, (v.truth for v in verdicts), strict=True)]
    counted = counted_lines(rule, values)
    return tuple(
        Weight(
            label=line.label,
            verdict=verdicts[at],
            nats=values[at],
            group=line.group,
            counted=at in counted,
        )
        for at, line in enumerate(rule.evidence)
    )


def counted_lines(rule: Rule, values: Sequence[float]) -> set[int]:
    """Return the places of the lines that count: of each group only the strongest one."""
    counted: set[int] = set()
    strongest: dict[str, int] = {}
    for at, line in enumerate(rule.evidence):
        if line.group is None:
            counted.add(at)
        elif abs(values[at]) > abs(values[strongest.setdefault(line.group, at)]):
            strongest[line.group] = at
    return counted.union(strongest.values())


def guarded(rule: Rule, action: Callable[[], T]) -> T | RuleFault:
    """Do what a rule asks for; a bug in one rule becomes a fault and never hides the others."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - any bug, by intent
        return RuleFault(code=rule.code, message=f"{type(error).__name__}: {error}")


def evaluate_gates(ruleset: RuleSet, book: FactBook) -> RuleResult:
    """Evaluate the gate of every rule; a rule that fails becomes a fault, the others go on."""
    gates = {}
    faults = [RuleFault(code=code, message=message) for code, message in ruleset.faults]
    for rule in ruleset.rules:
        verdict = guarded(rule, partial(gate, rule, book))
        if isinstance(verdict, RuleFault):
            faults.append(verdict)
        else:
            gates[rule.code] = verdict
            faults += pattern_faults(rule, book)
    return RuleResult(gates=gates, faults=tuple(faults))


def pattern_faults(rule: Rule, book: FactBook) -> tuple[RuleFault, ...]:
    """Return a fault for each pattern of a rule whose search on this book ran out of time."""
    faults = []
    for expression in expressions_of(rule):
        for key, pattern in timed_out_patterns(expression.tree, book):
            message = f"the pattern {pattern!r} took too long on {key}; its leaf stays unknown"
            faults.append(RuleFault(code=rule.code, message=message))
    return tuple(dict.fromkeys(faults))


def expressions_of(rule: Rule) -> Iterator[Expression]:
    """Yield all expressions of a rule: gate, evidence, explains, and those of its fixes."""
    yield from leaves_of(rule.when)
    for line in rule.evidence:
        yield from leaves_of(line.condition)
    if rule.explains is not None:
        yield rule.explains
    for fix in rule.fixes:
        for condition in (fix.needs, fix.in_force):
            if condition is not None:
                yield from leaves_of(condition)
        if fix.saves is not None:
            yield from (fix.saves.low, fix.saves.likely, fix.saves.high)


def leaves_of(condition: Condition) -> Iterator[Expression]:
    """Yield the leaf expressions of a condition, in order."""
    if condition.leaf is not None:
        yield condition.leaf
    for part in condition.parts:
        yield from leaves_of(part)
