"""The pure part of an interview: which question is next, what an answer does."""

from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.given import parse_given
from oomdoctor.facts.questions import questions
from oomdoctor.reason import interview
from oomdoctor.reason.answering import command_of, understand
from oomdoctor.reason.interview import Answer, Prospect, sources
from oomdoctor.reason.rank import rank
from oomdoctor.reason.supposing import OTHER, Supposing
from oomdoctor.rules.loader import load_rules

RULES = load_rules()


def book_of(*items: str) -> FactBook:
    return FactBook().add(parse_given(items))


BARE = ("oom.seen=true", "oom.backend=cuda", "oom.absurd_size=false", "oom.form=allocator")


def test_supposing_nothing_agrees_with_the_ranking() -> None:
    book = book_of(*BARE)

    now = Supposing(RULES, book).now
    ranking = rank(RULES, book, certain="gpu")

    expected = {
        c.cause.id: p for c, p in zip(ranking.candidates, ranking.probabilities, strict=True)
    }
    assert pytest.approx(expected) == {name: now.masses[name] for name in now.scores}


def test_supposing_nothing_agrees_where_nothing_is_trained() -> None:
    book = book_of(*BARE, "run.inference_only=true")

    now = Supposing(RULES, book).now
    ranking = rank(RULES, book, certain="gpu")

    expected = {
        c.cause.id: p for c, p in zip(ranking.candidates, ranking.probabilities, strict=True)
    }
    assert pytest.approx(expected) == {name: now.masses[name] for name in now.scores}


def test_supposing_that_nothing_is_trained_agrees_too() -> None:
    supposed = Supposing(RULES, book_of(*BARE)).given(["run.inference_only=true"])
    anew = Supposing(RULES, book_of(*BARE, "run.inference_only=true")).now

    assert pytest.approx(anew.masses) == supposed.masses


def test_supposing_a_fact_agrees_with_judging_everything_anew() -> None:
    book = book_of(*BARE)

    supposed = Supposing(RULES, book).given(["run.phase=eval", "growth.monotone=true"])
    anew = Supposing(RULES, book_of(*BARE, "run.phase=eval", "growth.monotone=true")).now

    assert pytest.approx(anew.masses) == supposed.masses


def test_supposing_another_resource_agrees_too() -> None:
    supposed = Supposing(RULES, book_of("run.phase=load")).given(["host.killed=true"])
    anew = Supposing(RULES, book_of("run.phase=load", "host.killed=true")).now

    assert pytest.approx(anew.masses) == supposed.masses


def test_without_any_fact_the_message_is_asked_for_first() -> None:
    book = FactBook()

    options = interview.prospects(Supposing(RULES, book), book, ())

    assert options[0].question.id == "memory"


def test_after_a_bare_message_it_is_asked_when() -> None:
    book = book_of(*BARE)

    options = interview.prospects(Supposing(RULES, book), book, ())

    assert options[0].question.id == "when"


def test_no_answered_question_is_put_again() -> None:
    book = book_of(*BARE)

    options = interview.prospects(Supposing(RULES, book), book, (Answer(question="when"),))

    assert "when" not in {one.question.id for one in options}


def test_what_is_known_or_contradicted_is_not_asked() -> None:
    asked = questions()

    assert not interview.is_open(asked["when"], book_of("run.phase=eval"))
    assert not interview.is_open(asked["metrics"], book_of("run.phase=backward"))
    assert interview.is_open(asked["metrics"], book_of("run.phase=eval"))
    assert not interview.is_open(asked["card"], book_of("host.killed=true"))


def test_chances_of_all_answers_add_up() -> None:
    book = book_of(*BARE)

    prospect = interview.prospect(questions()["when"], Supposing(RULES, book))

    assert pytest.approx(1.0) == sum(one.probability for one in prospect.outcomes)
    assert prospect.gain_bits > 0


def test_a_question_that_no_rule_cares_about_promises_nothing() -> None:
    book = book_of("assert.device_side=true")

    prospect = interview.prospect(questions()["expandable"], Supposing(RULES, book))

    assert prospect.gain_bits < interview.LEAST_BITS


def test_an_established_cause_ends_the_interview() -> None:
    options = [Prospect(question=questions()["when"], gain_bits=0.5, outcomes=())]

    assert interview.next_question(options, conclusive=True, leading=0.97) is None
    assert interview.next_question(options, conclusive=True, leading=0.70) is options[0]
    assert interview.next_question([], conclusive=False) is None


def test_the_last_answer_about_a_fact_counts_and_what_is_dropped_is_gone() -> None:
    answers = (
        Answer(question="when", facts=("run.phase=eval", "run.late_step=true")),
        Answer(question="", facts=("run.phase=save",)),
        Answer(question="", drops=("run.late_step",)),
    )

    assert interview.stated(answers) == ("run.phase=save",)


def test_moves_show_what_leads_now_and_what_led_before() -> None:
    supposing = Supposing(RULES, book_of(*BARE))

    moved = interview.moves(supposing.now, supposing.given(["run.phase=save"]))

    assert moved[0].cause == "checkpoint-save-gather"
    assert moved[-1].cause == supposing.now.leader
    assert OTHER not in {one.cause for one in moved}


@pytest.mark.parametrize("line", ["", "?", "don't know", "Not sure", "idk", "no idea."])
def test_not_knowing_is_an_answer(line: str) -> None:
    answer = understand(questions()["when"], line)

    assert answer is not None
    assert not answer.is_known


@pytest.mark.parametrize("line", ["6", "6.", "in evaluation", "run.phase = eval"])
def test_a_number_a_beginning_or_a_fact_chooses(line: str) -> None:
    answer = understand(questions()["when"], line)

    assert answer is not None
    assert answer.facts == ("run.phase=eval",)


def test_a_number_beyond_the_list_is_not_understood() -> None:
    assert understand(questions()["when"], "77") is None


@pytest.mark.parametrize(("line", "value"), [("y", "true"), ("No", "false"), ("nope", "false")])
def test_yes_and_no_are_understood(line: str, value: str) -> None:
    answer = understand(questions()["metrics"], line)

    assert answer is not None
    assert answer.facts == (f"eval.compute_metrics={value}",)


@pytest.mark.parametrize(
    ("name", "line", "fact"),
    [
        ("workers", "12", "data.workers=12"),
        ("workers", "none", "data.workers=0"),
        ("shm", "64MB", "host.shm_total=64MB"),
    ],
)
def test_numbers_and_sizes_are_read(name: str, line: str, fact: str) -> None:
    answer = understand(questions()[name], line)

    assert answer is not None
    assert answer.facts == (fact,)


def test_words_are_kept_with_the_facts_in_them() -> None:
    answer = understand(questions()["when"], "it dies in validation")

    assert answer is not None
    assert (answer.text, answer.facts) == ("it dies in validation", ("run.phase=eval",))


@pytest.mark.parametrize(
    ("line", "command"),
    [("why", "why"), ("why?", "why"), ("Back", "back"), ("q", "quit"), ("6", None), ("", None)],
)
def test_commands_are_told_from_answers(line: str, command: str | None) -> None:
    assert command_of(line) == command


def test_a_figure_that_stands_for_words_says_so() -> None:
    answer = understand(questions()["card"], "2")

    assert answer is not None
    said = "a stand-in for the answer: other programs hold a fifth of the card or more"
    assert sources([answer])["gpu.foreign_share"] == said


def test_a_chosen_word_names_its_answer() -> None:
    answer = understand(questions()["card"], "7")

    assert answer is not None
    assert sources([answer]) == {"gpu.mig": "answered: a slice of a card (MIG)"}


def test_a_typed_number_is_no_stand_in() -> None:
    answer = understand(questions()["workers"], "12")

    assert answer is not None
    assert sources([answer]) == {}
