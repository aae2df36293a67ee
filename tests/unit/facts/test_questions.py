"""The table of questions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from oomdoctor.facts.given import parse_one
from oomdoctor.facts.questions import questions, questions_by_fact
from oomdoctor.facts.registry import specs

if TYPE_CHECKING:
    from oomdoctor.facts.question import Question

ALL = list(questions().values())


@pytest.mark.parametrize("question", ALL, ids=lambda one: one.id)
def test_every_answer_states_facts_of_the_registry(question: Question) -> None:
    for choice in question.choices:
        for item in choice.sets:
            parse_one(item)


@pytest.mark.parametrize("question", ALL, ids=lambda one: one.id)
def test_the_shares_of_the_answers_add_up(question: Question) -> None:
    assert math.isclose(1.0, sum(one.share for one in question.choices), abs_tol=0.011)


@pytest.mark.parametrize("question", ALL, ids=lambda one: one.id)
def test_what_settles_a_question_is_a_fact(question: Question) -> None:
    keys = {*question.settled, *(item.partition("=")[0].rstrip("!") for item in question.only_if)}

    assert keys - set(specs()) == set()


def test_kinds_and_texts_are_in_order() -> None:
    assert {one.kind for one in ALL} <= {"choice", "number", "words", "paste"}
    assert len({one.text for one in ALL}) == len(ALL)
    assert all(one.text.endswith(("?", ".", ")")) for one in ALL)


def test_a_fact_names_the_question_that_is_most_about_it() -> None:
    assert questions_by_fact()["run.phase"].id == "when"
    assert "log.text" not in questions_by_fact()
