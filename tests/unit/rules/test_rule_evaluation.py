"""How compiled conditions and values come out on a book of facts."""

from __future__ import annotations

import math

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Kind, Maturity, Origin, Severity, Truth
from oomdoctor.rules.evaluate import (
    condition_verdict,
    evaluate_gates,
    expression_value,
    pattern_faults,
    weigh,
)
from oomdoctor.rules.language import compile_expression
from oomdoctor.rules.shape import Condition, Evidence, Expression, Rule, RuleSet
from oomdoctor.rules.source import leaf_condition

GIB, MIB = 1024**3, 1024**2


def fact(key: str, value: object, slack: float = 0, **extra: object) -> Fact:
    quote = Quote(artifact="log", line=1, text=key)
    given = {"quotes": (quote,), **extra}
    return Fact(key=key, value=value, slack=slack, **given)  # type: ignore[arg-type] - test data


def book(*facts: Fact, closes: tuple[str, ...] = ()) -> FactBook:
    return FactBook().add(facts, closes=closes)


def leaf(source: str) -> Condition:
    return leaf_condition(compile_expression(source, expect=Kind.BOOL))


def rule(when: Condition, *evidence: Evidence, code: str = "ALC3001") -> Rule:
    return Rule(
        code=code,
        name="x",
        title="X",
        severity=Severity.ERROR,
        maturity=Maturity.STABLE,
        since="0.1.0",
        when=when,
        evidence=evidence,
    )


FREE = fact("oom.free", 2 * GIB, slack=5 * MIB)
ASKED = fact("oom.requested", 2 * GIB + 4 * MIB, slack=5 * MIB)
TORCH = fact("env.torch", "2.4.0+cu121")
PHASE = fact("run.phase", "eval")
SEEN = fact("oom.seen", value=True)

TRUTHS = [
    ("oom.free > 1*GiB", Truth.TRUE),
    ("oom.free < 1*GiB", Truth.FALSE),
    ("oom.free < oom.requested", Truth.UNKNOWN),
    ("oom.free == '2 GiB'", Truth.UNKNOWN),
    ("oom.free < oom.capacity", Truth.UNKNOWN),
    ("oom.free * 2 < oom.requested", Truth.FALSE),
    ("oom.free / oom.requested > 0.998", Truth.UNKNOWN),
    ("oom.free / oom.requested > 0.9", Truth.TRUE),
    ("ceil_to(oom.free, 1*GiB) == 2*GiB", Truth.UNKNOWN),
    ("ceil_to(oom.free, 1*GiB) <= 3*GiB", Truth.UNKNOWN),
    ("ceil_to(oom.free, 1*GiB) <= 5*GiB", Truth.TRUE),
    ("abs(oom.free - oom.requested) < 20*MiB", Truth.TRUE),
    ("min(oom.free, 1*GiB) == 1*GiB", Truth.TRUE),
    ("max(oom.free, 3*GiB) == 3*GiB", Truth.TRUE),
    ("oom.free / (oom.free - oom.requested) > 1", Truth.UNKNOWN),
    ("env.torch >= '2.4'", Truth.TRUE),
    ("env.torch == '2.4'", Truth.TRUE),
    ("env.torch < '2.10'", Truth.TRUE),
    ("env.torch in '>=2.1,<2.4'", Truth.FALSE),
    ("env.torch in '>=2.1, !=2.3'", Truth.TRUE),
    ("env.vllm > '0.1'", Truth.UNKNOWN),
    ("run.phase == 'eval'", Truth.TRUE),
    ("run.phase != 'eval'", Truth.FALSE),
    ("run.phase in ['loss', 'eval']", Truth.TRUE),
    ("run.phase not in ['loss', 'eval']", Truth.FALSE),
    ("oom.seen", Truth.TRUE),
    ("not oom.seen", Truth.FALSE),
    ("oom.seen == false", Truth.FALSE),
    ("oom.seen == oom.caught", Truth.UNKNOWN),
    ("oom.seen or oom.caught", Truth.TRUE),
    ("oom.seen and oom.caught", Truth.UNKNOWN),
    ("oom.caught and run.phase == 'loss'", Truth.FALSE),
    ("oom.caught or not oom.caught", Truth.UNKNOWN),
    ("true", Truth.TRUE),
]


@pytest.mark.parametrize(("source", "truth"), TRUTHS)
def test_a_leaf_comes_out(source: str, truth: Truth) -> None:
    facts = book(FREE, ASKED, TORCH, PHASE, SEEN)

    assert truth is condition_verdict(leaf(source), facts).truth


def test_what_is_missing_is_told() -> None:
    verdict = condition_verdict(leaf("oom.free < oom.capacity and not oom.caught"), book(FREE))

    assert frozenset({"oom.capacity", "oom.caught"}) == verdict.missing


def test_rounding_that_decides_is_told_as_missing() -> None:
    verdict = condition_verdict(leaf("oom.free < oom.requested"), book(FREE, ASKED))

    assert frozenset({"oom.free", "oom.requested"}) == verdict.missing


def test_exact_figures_that_are_equal_are_equal() -> None:
    exact = book(fact("oom.free", GIB), fact("oom.requested", GIB))

    assert condition_verdict(leaf("oom.free == oom.requested"), exact).truth is Truth.TRUE
    assert condition_verdict(leaf("oom.free < oom.requested"), exact).truth is Truth.FALSE


def test_division_by_zero_is_unknown() -> None:
    zero = book(FREE, fact("oom.capacity", 0))
    verdict = condition_verdict(leaf("oom.free / oom.capacity > 0.5"), zero)

    assert verdict.truth is Truth.UNKNOWN
    assert verdict.missing


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e308, "many", True, 10**400])
def test_a_value_that_cannot_be_calculated_with_is_unknown(value: object) -> None:
    odd = book(fact("run.epoch", value), fact("run.progress", 1e308))
    verdict = condition_verdict(leaf("run.epoch * run.progress > 2"), odd)

    assert verdict.truth is Truth.UNKNOWN
    assert verdict.missing


def test_the_quotes_are_those_of_the_facts_that_decided() -> None:
    parts = (leaf("oom.seen"), leaf("run.phase == 'loss'"), leaf("oom.free > 1*GiB"))
    verdict = condition_verdict(Condition(op="all", parts=parts), book(FREE, PHASE, SEEN))

    assert verdict.truth is Truth.FALSE
    assert [quote.text for quote in verdict.quotes] == ["run.phase"]


STACK = "a.py:1 main | f()\nb.py:2 f | loss = ce()\nc.py:3 ce | logits.float()\nd.py:4 ce | x"
LINES = tuple(Quote(artifact="log", line=n, text=t) for n, t in enumerate(STACK.split("\n"), 7))


def test_a_pattern_quotes_the_lines_that_it_hits() -> None:
    stack = book(fact("trace.stack", STACK, quotes=LINES))
    verdict = condition_verdict(leaf("matches(trace.stack, ' ce \\||^a')"), stack)

    assert [quote.line for quote in verdict.quotes] == [7, 9, 10]


def test_a_pattern_that_does_not_hit_quotes_no_line() -> None:
    stack = book(fact("trace.stack", STACK, quotes=LINES))
    verdict = condition_verdict(leaf("matches(trace.stack, 'backward')"), stack)

    assert (verdict.truth, verdict.quotes) == (Truth.FALSE, ())


def test_a_pattern_on_a_text_with_one_quote_quotes_that() -> None:
    name = book(fact("gpu.name", "NVIDIA H200"))
    verdict = condition_verdict(leaf("matches(gpu.name, 'H[12]00')"), name)

    assert [quote.text for quote in verdict.quotes] == ["gpu.name"]


def test_a_pattern_without_end_stays_unknown_and_is_a_fault() -> None:
    hostile = book(fact("log.text", "a" * 5000 + "!"))
    slow = rule(leaf(r"matches(log.text, '^(a|aa)+$')"))

    verdict = condition_verdict(slow.when, hostile)

    assert (Truth.UNKNOWN, frozenset({"log.text"})) == (verdict.truth, verdict.missing)
    (fault,) = pattern_faults(slow, hostile)
    assert "took too long on log.text" in fault.message


def test_patterns_are_not_searched_where_cheap_parts_decide() -> None:
    pattern = leaf(r"matches(log.text, '^(\w+\s?)+?x$')")
    condition = Condition(op="all", parts=(pattern, leaf("oom.seen")), heavy=True)
    facts = book(fact("oom.seen", value=False), fact("log.text", "a" * 5000 + "!"))

    verdict = condition_verdict(condition, facts)

    assert (Truth.FALSE, frozenset({"oom.seen"})) == (verdict.truth, verdict.read)


def test_the_lines_of_a_text_are_counted() -> None:
    text = book(fact("log.text", "a\nb\nc"))

    assert condition_verdict(leaf("count(log.text) == 3"), text).truth is Truth.TRUE


PRESENCE = [
    (book(fact("lora.on", value=False)), Truth.TRUE),
    (book(), Truth.UNKNOWN),
    (book(closes=("process-table",)), Truth.UNKNOWN),
    (book(closes=("train-config",)), Truth.FALSE),
    (book(fact("lora.on", value=False, origin=Origin.ASSUMED)), Truth.UNKNOWN),
    (
        book(fact("lora.on", value=True, origin=Origin.ASSUMED), closes=("train-config",)),
        Truth.FALSE,
    ),
]


@pytest.mark.parametrize(("facts", "truth"), PRESENCE)
def test_absence_is_known_only_of_an_input_read_to_its_end(facts: FactBook, truth: Truth) -> None:
    assert truth is condition_verdict(leaf("present(lora.on)"), facts).truth


VALUES = [
    ("min(oom.free, 1*GiB)", GIB),
    ("oom.free * 0.5", GIB),
    ("oom.free / 3", round(2 * GIB / 3)),
    ("oom.free + oom.capacity", None),
    ("0*B", 0),
    ("oom.free / (1*GiB)", 2.0),
    ("run.phase", "eval"),
    ("gpu.name", None),
    ("oom.seen", True),
    ("oom.caught", None),
]


@pytest.mark.parametrize(("source", "value"), VALUES)
def test_a_value_is_calculated(source: str, value: object) -> None:
    expression = compile_expression(source)

    result, verdict = expression_value(expression, book(FREE, PHASE, SEEN))

    assert value == result
    assert (Truth.UNKNOWN if value is None else Truth.TRUE) is verdict.truth
    assert (value is None) is bool(verdict.missing)


def line(source: str, cause: float, otherwise: float, group: str | None = None) -> Evidence:
    return Evidence(
        condition=leaf(source), in_cause=cause, otherwise=otherwise, label=source, group=group
    )


def test_evidence_is_weighed_in_nats() -> None:
    weights = weigh(
        rule(
            leaf("oom.seen"),
            line("oom.seen", 0.9, 0.1),
            line("oom.caught", 0.5, 0.1),
            line("run.phase == 'loss'", 0.8, 0.4),
        ),
        book(SEEN, PHASE),
    )

    assert [round(weight.nats, 3) for weight in weights] == [2.197, 0.0, -1.099]


def test_only_the_strongest_line_of_a_group_counts() -> None:
    weights = weigh(
        rule(
            leaf("oom.seen"),
            line("oom.seen", 0.6, 0.3, "g"),
            line("run.phase == 'loss'", 0.95, 0.1, "g"),
            line("oom.seen", 0.7, 0.1),
        ),
        book(SEEN, PHASE),
    )

    assert [weight.counted for weight in weights] == [False, True, True]


def test_a_broken_rule_is_a_fault_and_the_others_stay() -> None:
    broken = Expression(source="?", tree=["<", ["?"], 1], kind=Kind.BOOL, reads=frozenset())
    ruleset = RuleSet(
        rules=(
            rule(leaf_condition(broken), code="ALC3001"),
            rule(leaf("oom.seen"), code="ALC3002"),
        ),
        causes={},
        faults=(("ALC3003", "cannot be loaded"),),
    )

    result = evaluate_gates(ruleset, book(SEEN))

    assert list(result.gates) == ["ALC3002"]
    assert [fault.code for fault in result.faults] == ["ALC3003", "ALC3001"]
