"""Ranking: what a gate that is false or open does, and what is named as missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oomdoctor.reason.rank import OTHER_PRIOR, rank
from tests.unit.reason.builders import book, cause, line, rule, ruleset
from tests.unit.reason.rivals import CAUSES, CAUSES_AB, FOREIGN, LARGE, probability, shown


def test_a_false_gate_rules_a_cause_out() -> None:
    rules = ruleset([replace(FOREIGN, when=rule("X", "x", "oom.caught").when), LARGE], CAUSES)

    ranking = rank(rules, book(oom__seen=True, oom__caught=False))

    assert [one.cause for one in ranking.findings] == ["large-batch"]


def test_an_open_gate_counts_half_and_names_what_is_missing() -> None:
    rules = ruleset([replace(FOREIGN, when=rule("X", "x", "oom.caught").when), LARGE], CAUSES)

    ranking = rank(rules, book(oom__seen=True))

    assert probability(ranking, "other-process") == pytest.approx(shown(0.03, 0.3, OTHER_PRIOR))
    assert ranking.not_evaluated[0].code == "EXT5001"
    assert ranking.not_evaluated[0].needs == ("oom.caught",)


def test_only_what_could_still_move_a_probability_is_named_as_missing() -> None:
    sure = [line("oom.hint_line", 0.999, 0.0001), line("run.late_step", 0.5, 0.4)]
    split = [line("run.first_step", 0.9, 0.1), line("run.rank == 0", 0.5001, 0.5)]
    rules = ruleset([rule("A", "a", evidence=sure), rule("B", "b", evidence=split)], CAUSES_AB)

    certain = rank(rules, book(oom__seen=True, oom__hint_line=True))
    open_ones = rank(rules, book(oom__seen=True))

    assert certain.findings[0].missing == ()
    missing = {one.cause: one.missing for one in open_ones.findings}
    assert missing == {"a": ("oom.hint_line", "run.late_step"), "b": ("run.first_step",)}


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("serve.ggml", {"oom__library": "torch"}),
        ("xla.total >= 1*GiB", {"oom__library": "torch"}),
        ("serve.engine == 'vllm'", {"run__inference_only": False}),
    ],
)
def test_what_another_program_would_tell_is_not_named_as_missing(
    key: str, known: dict[str, Any]
) -> None:
    rules = ruleset([rule("A", "a", evidence=[line(key, 0.1, 0.9)])], [cause("a")])

    of_another = rank(rules, book(oom__seen=True, **known))
    of_any = rank(rules, book(oom__seen=True))

    assert of_another.findings[0].missing == ()
    assert of_any.findings[0].missing == (key.partition(" ")[0],)


def test_an_open_gate_of_the_leader_is_never_conclusive() -> None:
    sure = [line("oom.hint_line", 0.99, 0.001)]
    settled = ruleset([rule("A", "a", evidence=sure)], [cause("a")])
    still_open = ruleset([rule("A", "a", "oom.caught", evidence=sure)], [cause("a")])
    facts = book(oom__seen=True, oom__hint_line=True)

    assert rank(settled, facts).conclusive
    assert not rank(still_open, facts).conclusive
