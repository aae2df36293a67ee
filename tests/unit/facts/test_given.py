"""Facts given as KEY=VALUE are read by their kind, and refused with what was expected."""

from __future__ import annotations

import pytest

from oomdoctor.errors import UsageError
from oomdoctor.facts.given import parse_given, parse_one, parse_possible
from oomdoctor.model.enums import Origin


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("oom.requested=1.5 GiB", 1610612736),
        ("oom.requested=20MB", 20971520),
        ("gpu.foreign=0", 0),
        ("model.vocab=151,936", 151936),
        ("balance.allocated_share=90%", 0.9),
        ("run.epoch=0.5", 0.5),
        ("oom.caught=no", False),
        ("alloc.expandable_segments=True", True),
        ("run.phase=Backward", "backward"),
        ("env.torch=v2.4.1", "2.4.1"),
        ("model.name = Qwen/Qwen2.5-7B ", "Qwen/Qwen2.5-7B"),
        ("alloc.conf=expandable_segments:True,a=b", "expandable_segments:True,a=b"),
    ],
)
def test_values_are_read_by_the_kind_of_the_fact(item: str, expected: object) -> None:
    fact = parse_one(item)

    assert fact.value == expected
    assert type(fact.value) is type(expected)


def test_a_given_fact_is_stated_and_keeps_its_rounding() -> None:
    fact = parse_one("oom.requested=1.50 GiB")

    assert (fact.origin, fact.slack, fact.source) == (
        Origin.STATED,
        5368709,
        "stated with --fact",
    )


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("oom.requested", "is not KEY=VALUE"),
        ("=3", "is not KEY=VALUE"),
        ("oom.requestd=1 GiB", "did you mean oom.requested"),
        ("oom.requested=", "has no value"),
        ("oom.requested=3", "is not a size with a unit"),
        ("oom.requested=3 GHz", "1.5 GiB, 20 MiB or 512 B"),
        ("model.vocab=many", "is not a whole number"),
        ("balance.allocated_share=most", "0.9 or 90%"),
        ("oom.caught=perhaps", "is not true or false"),
        ("run.phase=backwards", "did you mean backward?"),
        ("run.phase=xyz", "choices: import, load"),
        ("env.torch=newest", "is not a version"),
        (f"train.micro_batch={'9' * 5000}", "is not a whole number"),
        (f"oom.requested={'9' * 5000}GiB", "is not a size"),
        (f"run.progress={'9' * 500}", "is not a ratio"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_was_expected(item: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_one(item)

    assert words in str(caught.value)


def test_a_fact_given_twice_with_two_values_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        parse_given(["model.vocab=1", "model.vocab=2"])

    assert "given twice" in str(caught.value)


def test_a_fact_given_twice_with_one_value_counts_once() -> None:
    facts = parse_given(["model.vocab=1", "model.vocab=1", "model.layers=2"])

    assert [fact.key for fact in facts] == ["model.vocab", "model.layers"]


@pytest.mark.parametrize("item", ["train.micro_batch=0", "train.seq_len=-5", "lora.rank=-8"])
def test_a_number_that_no_job_can_have_is_refused(item: str) -> None:
    with pytest.raises(UsageError, match="none that a job can have") as caught:
        parse_possible([item])

    assert "a whole number of at least 1" in str(caught.value.hint)
