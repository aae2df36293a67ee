"""The next measurement: cheap and telling first, always one with a command when needed."""

from __future__ import annotations

import pytest

from oomdoctor.reason.fallbacks import FALLBACKS
from oomdoctor.reason.next_step import measurements
from oomdoctor.reason.rank import rank
from tests.unit.reason.builders import book, cause, line, rule, ruleset

APPS = "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv"
FOREIGN = rule(
    "EXT5001", "other-process", evidence=[line("gpu.foreign > 2*GiB", 0.95, 0.05, label="a row")]
)
GROWTH = rule(
    "LEK4001", "leak", evidence=[line("growth.per_step > 1*MiB", 0.95, 0.05, label="it rises")]
)
RULES = ruleset([FOREIGN, GROWTH], [cause("other-process", prior=0.3), cause("leak", prior=0.3)])


def test_of_two_equally_telling_measurements_the_cheaper_one_comes_first() -> None:
    facts = book(oom__seen=True)

    found = measurements(rank(RULES, facts), facts)

    assert [one.fact for one in found] == ["gpu.foreign", "growth.per_step"]
    assert found[0].command == APPS


def test_what_is_known_is_not_asked_for() -> None:
    facts = book(oom__seen=True, gpu__foreign=0)

    found = measurements(rank(RULES, facts), facts)

    assert [one.fact for one in found] == ["growth.per_step"]


def test_a_measurement_says_what_each_answer_would_mean() -> None:
    facts = book(oom__seen=True)

    first = measurements(rank(RULES, facts), facts)[0]

    assert first.meanings == (
        "If so (a row): other-process goes from 46 % to 99 %; if not, to 1 %.",
    )
    assert set(first.decides_between) == {"other-process", "leak"}


def test_the_gain_is_the_expected_drop_of_entropy_in_bits() -> None:
    rules = ruleset(
        [rule("A", "a", evidence=[line("gpu.foreign > 2*GiB", 0.99, 0.01)])],
        [cause("a", prior=0.10)],
    )
    facts = book(oom__seen=True)

    found = measurements(rank(rules, facts), facts)

    # one bit of doubt between two equal hypotheses, less the entropy of one error in 2,470: what
    # odds of 99 come to where shown probabilities take odds to the power of 1.7
    assert found[0].gain_bits == pytest.approx(1 - 0.0052, abs=1e-3)


def test_facts_that_one_command_gives_are_merged() -> None:
    rules = ruleset(
        [
            rule("A", "a", evidence=[line("gpu.used > 2*GiB", 0.9, 0.1)]),
            rule("B", "b", evidence=[line("gpu.count > 1", 0.1, 0.9)]),
        ],
        [cause("a"), cause("b")],
    )
    facts = book(oom__seen=True)

    found = measurements(rank(rules, facts), facts)

    assert len(found) == 1
    assert len(found[0].meanings) == 2


def test_derived_facts_are_asked_for_through_what_they_are_derived_from() -> None:
    rules = ruleset(
        [rule("A", "a", evidence=[line("gpu.foreign_share > 0.2", 0.9, 0.1)])], [cause("a")]
    )
    facts = book(oom__seen=True)
    sources = {"gpu.foreign_share": ("gpu.foreign", "gpu.total")}

    found = measurements(rank(rules, facts), facts, sources=sources)

    assert [one.fact for one in found] == ["gpu.foreign"]


def test_an_open_gate_is_a_question_too() -> None:
    rules = ruleset([rule("A", "a", "gpu.foreign > 2*GiB")], [cause("a")])

    found = measurements(rank(rules, book()), book())

    assert [one.fact for one in found] == ["gpu.foreign"]


def test_without_anything_to_gain_there_is_still_a_measurement_where_one_is_needed() -> None:
    rules = ruleset([rule("A", "a")], [cause("a")])
    facts = book(oom__seen=True)

    assert measurements(rank(rules, facts), facts) == ()
    assert measurements(rank(rules, facts), facts, needed=True)[0].command == FALLBACKS[0][1]


def test_a_fallback_for_a_known_fact_is_left_out() -> None:
    facts = book(oom__requested=1, trace__stack="x")

    found = measurements(rank(ruleset([], []), facts), facts, needed=True)

    assert [one.fact for one in found] == ["gpu.foreign", "torch.non_releasable", "growth.per_step"]


def test_figures_of_the_message_are_asked_for_with_the_message() -> None:
    rules = ruleset(
        [rule("A", "a", evidence=[line("balance.allocated_share > 0.8", 0.9, 0.1)])], [cause("a")]
    )
    facts = book(oom__seen=True)
    sources = {
        "balance.allocated_share": ("torch.allocated", "oom.capacity", "gpu.total"),
        "gpu.total": ("gpu.name",),
    }

    found = measurements(rank(rules, facts), facts, sources=sources)

    assert [one.command for one in found] == [FALLBACKS[0][1]]


@pytest.mark.parametrize("writer", [{"oom__form": "engine"}, {"oom__library": "xla"}])
def test_figures_that_an_engine_s_message_cannot_have_are_asked_of_the_driver(
    writer: dict[str, str],
) -> None:
    lines = [line("oom.capacity > 2*GiB", 0.95, 0.05), line("torch.reserved > 2*GiB", 0.95, 0.05)]
    rules = ruleset([rule("A", "a", evidence=lines)], [cause("a", prior=0.3)])
    facts = book(oom__seen=True, **writer)

    found = measurements(rank(rules, facts), facts, needed=True)

    assert found[0].command.startswith("nvidia-smi --query-gpu=")
    assert [one.command for one in found if "Tried to allocate" in one.command] == []


def test_what_only_pytorch_s_message_names_is_not_asked_of_the_driver() -> None:
    lines = [line("oom.largest_process > 0.1 * oom.capacity", 0.95, 0.05)]
    rules = ruleset([rule("A", "a", evidence=lines)], [cause("a", prior=0.3)])
    facts = book(oom__seen=True, oom__library="xla")

    found = measurements(rank(rules, facts), facts)

    assert found == ()


def test_a_message_that_was_given_whole_is_not_asked_for_again() -> None:
    rules = ruleset(
        [rule("A", "a", evidence=[line("oom.capacity > 1*GiB", 0.9, 0.1)])], [cause("a")]
    )
    cut = book(oom__seen=True, oom__requested=1)
    whole = book(oom__seen=True, oom__requested=1, torch__allocated=1, oom__allowed=2)

    assert [one.fact for one in measurements(rank(rules, cut), cut)] == ["oom.capacity"]
    assert measurements(rank(rules, whole), whole) == ()


def test_the_plan_of_another_engine_is_not_asked_for_where_pytorch_s_allocator_failed() -> None:
    rules = ruleset([rule("A", "a", evidence=[line("serve.devices >= 2", 0.9, 0.1)])], [cause("a")])
    of_torch = book(oom__seen=True, oom__library="torch")
    of_other = book(oom__seen=True, oom__library="other")

    assert measurements(rank(rules, of_torch), of_torch) == ()
    assert [one.fact for one in measurements(rank(rules, of_other), of_other)] == ["serve.devices"]


def test_answers_that_change_nothing_are_not_spelled_out() -> None:
    rules = ruleset(
        [
            rule("A", "a", evidence=[line("gpu.foreign > 2*GiB", 0.9, 0.1)]),
            rule("B", "b", evidence=[line("gpu.foreign > 3*GiB", 0.5, 0.49)]),
        ],
        [cause("a"), cause("b")],
    )
    facts = book(oom__seen=True)

    found = measurements(rank(rules, facts), facts)

    assert len(found[0].meanings) == 1
