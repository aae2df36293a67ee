"""Ranking: probabilities, gates, families and what a finding quotes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.model.enums import Origin
from oomdoctor.reason.rank import (
    OTHER_PRIOR,
    SHOWN,
    posterior,
    rank,
)
from tests.unit.reason.builders import book, cause, fact, line, rule, ruleset
from tests.unit.reason.rivals import CAUSES, FOREIGN, LARGE, RULES, probability, shown

if TYPE_CHECKING:
    import random


def test_probabilities_and_the_rest_add_up_to_one() -> None:
    ranking = rank(RULES, book(oom__seen=True))

    total = sum(one.probability for one in ranking.findings) + ranking.other_probability

    assert total == pytest.approx(1.0)


def test_priors_alone_give_shares_of_prior_mass() -> None:
    ranking = rank(RULES, book(oom__seen=True))

    assert probability(ranking, "large-batch") == pytest.approx(shown(0.3, 0.06, OTHER_PRIOR))


def test_evidence_turns_the_order_and_is_quoted() -> None:
    ranking = rank(RULES, book(oom__seen=True, balance__foreign_low_share=0.7))

    first = ranking.findings[0]

    assert (first.cause, [quote.line for quote in first.quotes]) == ("other-process", [1, 2])


def test_evidence_against_is_quoted_apart() -> None:
    ranking = rank(RULES, book(oom__seen=True, balance__allocated_share=0.1))

    large = next(one for one in ranking.findings if one.cause == "large-batch")

    assert [quote.line for quote in large.against] == [2]
    assert [quote.line for quote in large.quotes] == [1]


def test_of_several_rules_of_one_cause_the_strongest_speaks() -> None:
    strong = rule("B", "a", evidence=[line("oom.hint_line", 0.9, 0.1)])
    rules = ruleset([rule("A", "a"), strong], [cause("a")])

    first = rank(rules, book(oom__seen=True, oom__hint_line=True)).findings[0]

    assert (first.code, first.other_codes) == ("B", ("A",))


def test_near_rivals_count_as_one_family() -> None:
    lines = [line("oom.hint_line", 0.9, 0.05)]
    rules = [rule("A", "a", evidence=lines), rule("B", "b", evidence=lines)]
    facts = book(oom__seen=True, oom__hint_line=True)

    apart = rank(ruleset(rules, [cause("a"), cause("b", prior=0.09)]), facts)
    near = rank(ruleset(rules, [cause("a"), cause("b", prior=0.09, near=("a",))]), facts)

    assert (apart.conclusive, near.conclusive) == (False, True)


def test_a_family_that_shares_its_mass_evenly_is_not_conclusive() -> None:
    lines = [line("oom.hint_line", 0.9, 0.05)]
    rules = [rule(code, code.lower(), evidence=lines) for code in ("A", "B", "C")]
    causes = [cause("a", near=("b", "c")), cause("b", prior=0.09), cause("c", prior=0.08)]
    ranking = rank(ruleset(rules, causes), book(oom__seen=True, oom__hint_line=True))

    assert ranking.findings[0].probability < 0.45
    assert not ranking.conclusive


def test_a_cause_that_something_else_rivals_is_not_conclusive() -> None:
    ranking = rank(ruleset([rule("A", "a")], [cause("a", prior=0.2)]), book(oom__seen=True))

    assert ranking.findings[0].probability > 0.6
    assert not ranking.conclusive


def test_a_certain_gpu_message_dampens_host_causes_with_open_gates() -> None:
    rules = ruleset([LARGE, rule("H", "host", "host.killed")], [*CAUSES, HOST])
    facts = book(oom__seen=True)

    free = probability(rank(rules, facts), "host")
    damped = probability(rank(rules, facts, certain="gpu"), "host")

    assert damped < free / 10


HOST = cause("host", prior=0.1, resource="host")


def test_certain_host_memory_lets_the_broad_cause_lead() -> None:
    broad = cause("host-ram", prior=0.02, resource="host")
    finer = cause("offload", prior=0.05, resource="host", near=("host-ram",))
    rules = ruleset(
        [rule("H1", "host-ram", "host.killed"), rule("H2", "offload", "host.worker_killed")],
        [broad, finer],
    )

    ranking = rank(rules, book(host__killed=True), certain="host")

    assert [one.cause for one in ranking.findings] == ["host-ram", "offload"]


def test_a_trace_of_a_foreign_cause_is_not_listed_beside_certain_host_memory() -> None:
    rules = ruleset([LARGE], CAUSES)

    ranking = rank(rules, book(host__killed=True), certain="host")

    assert (ranking.findings, ranking.other_probability) == ((), 1.0)


def test_assumed_facts_that_were_read_are_named() -> None:
    assumed = replace(fact("balance.allocated_share", 0.9), origin=Origin.ASSUMED)

    ranking = rank(RULES, book(oom__seen=True).add([assumed]))

    large = next(one for one in ranking.findings if one.cause == "large-batch")
    assert large.assumed == ("balance.allocated_share",)


def test_rules_without_a_cause_become_side_findings() -> None:
    rules = ruleset([LARGE, rule("CFG9001", None, "oom.caught")], CAUSES)

    ranking = rank(rules, book(oom__seen=True, oom__caught=True))

    assert [one.code for one in ranking.side_findings] == ["CFG9001"]


def test_a_broken_rule_is_a_fault_and_the_others_go_on() -> None:
    rules = ruleset([rule("A", "unlisted-cause"), LARGE], CAUSES)

    ranking = rank(rules, book(oom__seen=True))

    assert [one.code for one in ranking.faults] == ["A"]
    assert [one.cause for one in ranking.findings] == ["large-batch"]


def test_a_pattern_that_takes_too_long_is_a_fault() -> None:
    slow = rule("A", "a", evidence=[line("matches(log.text, '(x+x+)+y')", 0.9, 0.1)])
    facts = book(oom__seen=True, log__text="x" * 4000)

    ranking = rank(ruleset([slow], [cause("a")]), facts)

    assert [(one.code, "took too long" in one.message) for one in ranking.faults] == [("A", True)]
    assert [one.cause for one in ranking.findings] == ["a"]


def test_at_most_eight_causes_are_shown() -> None:
    names = [f"cause-{number}" for number in range(12)]
    rules = ruleset([rule(f"R{n}", n) for n in names], [cause(n) for n in names])

    ranking = rank(rules, book(oom__seen=True))

    assert len(ranking.findings) == SHOWN
    assert ranking.other_probability == pytest.approx(0.5 / 1.3)


def test_the_bytes_a_cause_explains_come_from_its_formula() -> None:
    rules = ruleset([rule("A", "a", explains="oom.requested - oom.free")], [cause("a")])

    known = rank(rules, book(oom__seen=True, oom__requested=30, oom__free=10))
    unknown = rank(rules, book(oom__seen=True, oom__requested=30))

    assert known.findings[0].explains_bytes == 20
    assert unknown.findings[0].explains_bytes is None


SCORES = st.lists(st.floats(min_value=-40, max_value=40), max_size=12)


@given(SCORES)
def test_a_posterior_always_adds_up_to_one(scores: list[float]) -> None:
    masses, other = posterior(scores)

    assert math.fsum(masses) + other == pytest.approx(1.0)
    assert all(0 <= mass <= 1 for mass in masses)


@given(SCORES.filter(bool), st.floats(min_value=0, max_value=10), st.data())
def test_supporting_evidence_never_lowers_a_cause(
    scores: list[float], nats: float, data: st.DataObject
) -> None:
    index = data.draw(st.integers(min_value=0, max_value=len(scores) - 1))
    before = posterior(scores)[0][index]

    raised = [score + nats if at == index else score for at, score in enumerate(scores)]

    assert posterior(raised)[0][index] >= before - 1e-12


@settings(deadline=None, max_examples=25)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rules_and_facts_does_not_matter(shuffler: random.Random) -> None:
    names = [f"cause-{number}" for number in range(10)]
    rules = [
        rule(f"R{n}{k}", n, evidence=[line("oom.hint_line", 0.5 + k / 10, 0.4)])
        for n in names
        for k in (0, 1)
    ]
    facts = [fact("oom.seen", value=True), fact("oom.hint_line", value=True)]
    causes = [cause(n, prior=0.1) for n in names]
    expected = rank(ruleset(rules, causes), book().add(facts))

    shuffler.shuffle(rules)
    shuffler.shuffle(facts)
    shuffler.shuffle(causes)

    assert rank(ruleset(rules, causes), book().add(facts)).findings == expected.findings


@pytest.mark.parametrize(("idle", "factor"), [(True, 0.02), (False, 1.0)])
def test_a_cause_of_training_hardly_counts_where_nothing_trains(
    *, idle: bool, factor: float
) -> None:
    trains = replace(cause("large-batch", prior=0.3), training=True)
    rules = ruleset([FOREIGN, LARGE], (cause("other-process", prior=0.06), trains))

    ranking = rank(rules, book(oom__seen=True, run__inference_only=idle))

    found = dict(zip([one.cause.id for one in ranking.candidates], ranking.masses, strict=True))
    assert found["large-batch"] / found["other-process"] == pytest.approx(5 * factor)
