"""Sentences: stated figures plain, inferred ones marked, nothing reassuring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oomdoctor.model.enums import Origin
from oomdoctor.reason.narrate import against, headline, print_fact, says
from oomdoctor.reason.rank import rank
from tests.unit.reason.builders import GIB, book, cause, fact, failure, line, rule, ruleset


def test_stated_figures_are_printed_as_stated() -> None:
    one = rule("A", "a", says="The call asked for {oom.requested}.")

    assert says(one, book(oom__requested=GIB).facts) == "The call asked for 1.00 GiB."


def test_derived_figures_are_called_about() -> None:
    derived = replace(fact("balance.outside", 3 * GIB), origin=Origin.DERIVED)
    one = rule("A", "a", says="Outside lie {balance.outside}.")

    assert says(one, {derived.key: derived}) == "Outside lie about 3.00 GiB."


def test_lower_bounds_are_called_at_least_once() -> None:
    low = replace(fact("balance.foreign_low", 3 * GIB), origin=Origin.DERIVED)

    assert says(rule("A", "a", says="Others hold {balance.foreign_low}."), {low.key: low}) == (
        "Others hold at least 3.00 GiB."
    )
    assert says(
        rule("A", "a", says="Others hold at least {balance.foreign_low}."), {low.key: low}
    ) == ("Others hold at least 3.00 GiB.")


def test_a_sentence_that_starts_with_a_figure_starts_with_a_capital() -> None:
    derived = replace(fact("balance.outside", 3 * GIB), origin=Origin.DERIVED)

    assert says(rule("A", "a", says="{balance.outside} lie outside."), {derived.key: derived}) == (
        "About 3.00 GiB lie outside."
    )


def test_a_place_without_a_fact_falls_back_to_the_title() -> None:
    assert says(rule("A", "a", says="It asked for {oom.requested}."), {}) == "Title of A."


def test_a_clause_in_brackets_is_left_out_where_its_figure_is_missing() -> None:
    one = rule("A", "a", says="It asked for {oom.requested}[, where {oom.free} were free].")
    asked, free = fact("oom.requested", 2 * GIB), fact("oom.free", GIB)

    assert says(one, {asked.key: asked}) == "It asked for 2.00 GiB."
    assert says(one, {asked.key: asked, free.key: free}) == (
        "It asked for 2.00 GiB, where 1.00 GiB were free."
    )


def test_facts_are_printed_by_their_kind() -> None:
    printed = [
        print_fact(fact(key, value))
        for key, value in (
            ("oom.requested", 20 << 20),
            ("balance.allocated_share", 0.875),
            ("model.vocab", 151936),
            ("oom.seen", True),
            ("run.phase", "backward"),
        )
    ]

    assert printed == ["20.00 MiB", "88 %", "151,936", "yes", "backward"]


def test_what_speaks_against_is_worded_strongest_first() -> None:
    lines = [
        line("oom.hint_line", 0.2, 0.4, label="the hint is printed"),
        line("oom.caught", 0.7, 0.1, label="it was caught"),
    ]
    facts = book(oom__seen=True, oom__hint_line=True, oom__caught=False)
    ranking = rank(ruleset([rule("A", "a", evidence=lines)], [cause("a")]), facts)

    assert against(ranking.findings[0]) == (
        "Expected, but not so: it was caught.",
        "The hint is printed.",
    )
    assert against(ranking.findings[0], least=1.0) == ("Expected, but not so: it was caught.",)


def test_the_headline_of_an_open_answer_gives_the_share() -> None:
    ranking = rank(ruleset([rule("A", "a")], [cause("a")]), book(oom__seen=True))

    words = headline(
        "need_evidence", "gpu", ranking=ranking, sentence="X fills it.", event=failure()
    )

    assert words == "The inputs do not settle the cause; first in line with 50 %: X fills it."


def test_nothing_found_never_reassures() -> None:
    ranking = rank(ruleset([], []), book())

    words = headline("nothing_found", "unknown", ranking=ranking, sentence="", event=None)

    assert "does not show that the run is healthy" in words


def test_host_memory_with_an_open_reason_says_what_ran_out() -> None:
    ranking = rank(ruleset([], []), book())

    words = headline("not_gpu_oom", "host", ranking=ranking, sentence="", event=failure("host-oom"))

    assert words == "Host memory, not GPU memory, ran out; the deeper reason stays open."


def test_a_bare_kill_is_not_called_a_shortage_of_host_memory() -> None:
    ranking = rank(ruleset([rule("A", "a")], [cause("a")]), book(oom__seen=True))
    killed = failure("host-oom", facts=[fact("host.killed", value=True)])
    told = failure("host-oom", facts=[fact("host.oom_kill", value=True)])

    bare = headline("not_gpu_oom", "host", ranking=ranking, sentence="X fills it.", event=killed)
    sure = headline("not_gpu_oom", "host", ranking=ranking, sentence="X fills it.", event=told)

    assert bare.startswith("Signal 9 ended a process")
    assert sure.startswith("Host memory, not GPU memory, ran out")


@pytest.mark.parametrize(
    ("key", "value", "printed"),
    [
        ("train.learning_rate", 2e-5, "2e-05"),
        ("lora.scale", 16.0, "16"),
        ("eval.steps", 0.1, "0.1"),
    ],
)
def test_a_number_that_is_no_share_is_printed_as_it_is(
    key: str, value: float, printed: str
) -> None:
    assert print_fact(fact(key, value)) == printed
