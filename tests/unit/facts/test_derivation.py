"""The machinery of derived facts: origin, quotes, declared reads, precedence."""

from __future__ import annotations

import pytest

from oomdoctor.facts import derive
from oomdoctor.facts.book import FactBook
from oomdoctor.facts.derivation import Inputs, Outcome, apply, derives, run
from oomdoctor.facts.registry import specs
from oomdoctor.memory import physics
from oomdoctor.model.enums import Kind, Origin
from tests.unit.facts.stated import book, fact

ALL_STEPS = (*derive.STEPS, *physics.STEPS)


@derives("train.tokens", reads=("train.micro_batch", "train.seq_len"))
def _tokens(facts: Inputs) -> Outcome:
    return Outcome(facts.whole("train.micro_batch") * facts.whole("train.seq_len"), "product")


def test_a_missing_fact_gives_no_derived_fact() -> None:
    after = apply(book({"train.micro_batch": 2}), (_tokens,))

    assert after.get("train.tokens") is None


def test_quotes_are_those_of_the_facts_that_were_read() -> None:
    before = book({"train.micro_batch": 2, "train.seq_len": 8, "train.grad_accum": 4})

    made = apply(before, (_tokens,)).facts["train.tokens"]

    assert [quote.text for quote in made.quotes] == ["train.micro_batch=2", "train.seq_len=8"]


def test_what_rests_on_an_assumption_is_an_assumption() -> None:
    stated = fact("train.seq_len", 8)
    guessed = fact("train.micro_batch", 8, origin=Origin.ASSUMED)

    made = apply(FactBook().add([stated, guessed]), (_tokens,)).facts["train.tokens"]

    assert made.origin is Origin.ASSUMED


def test_a_stated_fact_is_not_derived_again() -> None:
    before = book({"train.micro_batch": 2, "train.seq_len": 8, "train.tokens": 5})

    assert apply(before, (_tokens,)).value("train.tokens") == 5


def test_a_derived_fact_replaces_an_assumed_one() -> None:
    before = book({"train.micro_batch": 2, "train.seq_len": 8})
    before = before.add([fact("train.tokens", 99, origin=Origin.ASSUMED)])

    made = apply(before, (_tokens,)).facts["train.tokens"]

    assert (made.value, made.origin) == (16, Origin.DERIVED)


def test_reading_an_undeclared_key_is_a_programming_error() -> None:
    @derives("train.tokens", reads=("train.micro_batch",))
    def sneaky(facts: Inputs) -> Outcome:
        return Outcome(facts.whole("train.seq_len"), "")

    with pytest.raises(KeyError):
        run(sneaky, {}, closed=frozenset())


@pytest.mark.parametrize("step", ALL_STEPS, ids=lambda step: step.key)
def test_every_derivation_gives_and_reads_registered_facts(step: object) -> None:
    keys = {step.key, *step.reads}  # type: ignore[attr-defined] - a Derivation

    assert keys - specs().keys() == set()


def test_later_derivations_read_what_earlier_ones_give() -> None:
    places: dict[str, int] = {}
    for place, step in enumerate(ALL_STEPS):
        places.setdefault(step.key, place)
    circular = {
        "torch.reserved",
        "torch.reserved_unallocated",
        "torch.allocated",
        "run.inference_only",
        "train.full_finetune",
        "model.params",
    }

    late = [
        (step.key, read)
        for place, step in enumerate(ALL_STEPS)
        if step.key not in circular
        for read in step.reads
        if places.get(read, -1) > place
    ]

    assert late == []


@pytest.mark.parametrize("text", ["fp32", "none", "cpu", "Qwen/Qwen2.5-7B", "dpo", "eager"])
def test_no_derivation_fails_on_a_full_book(text: str) -> None:
    values = {
        Kind.BYTES: 3 << 30,
        Kind.COUNT: 2,
        Kind.RATIO: 0.5,
        Kind.SECONDS: 1.0,
        Kind.BOOL: True,
        Kind.ENUM: text,
        Kind.TEXT: text,
        Kind.VERSION: "4.57.1",
    }
    targets = {step.key for step in ALL_STEPS}
    given = {k: values[spec.kind] for k, spec in specs().items() if k not in targets}
    for step in ALL_STEPS:
        made = run(step, book(given).facts, closed=frozenset(("train-config",)))

        assert made is None or made.source
