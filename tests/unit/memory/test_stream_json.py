"""Streams written as JSON and read again."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from oomdoctor.errors import InputError
from oomdoctor.memory.stream_json import from_json, to_json
from tests.unit.memory.streams import Script, training


def test_a_stream_comes_back_as_it_was() -> None:
    stream = training()
    assert stream == from_json(json.loads(json.dumps(to_json(stream))))


def test_an_empty_stream_comes_back() -> None:
    stream = Script().stream()
    assert stream == from_json(to_json(stream))


def test_names_are_written_once() -> None:
    written = json.dumps(to_json(training(layers=50)))
    assert written.count("aten.mul.Tensor") == 1


def test_events_are_ages() -> None:
    run = Script()
    first, second = run.make(10), run.make(20)
    run.free(second, first)
    assert to_json(run.stream())["events"] == [0, 0, 1, 2]


@settings(max_examples=50, deadline=None)
@given(some.integers(min_value=0, max_value=10_000))
def test_any_order_of_events_comes_back(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - made-up streams
    run = Script()
    live: list[int] = []
    for _ in range(chance.randrange(60)):
        if live and chance.random() < 0.5:
            run.free(live.pop(chance.randrange(len(live))))
        else:
            live.append(run.make(chance.randrange(1, 1 << 30), cuda_stream=chance.randrange(2)))
        if chance.random() < 0.2:
            run.part(chance.choice(("forward", "backward")))
    assert run.stream() == from_json(json.loads(json.dumps(to_json(run.stream()))))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", 99),
        ("sizes", [1]),
        ("events", [0, 5]),
        ("events", [0, 0, 1, 1]),
        ("names", []),
        ("phases", None),
    ],
)
def test_what_is_no_stream_is_refused(key: str, value: object) -> None:
    run = Script()
    run.make(10)
    run.make(20)
    with pytest.raises(InputError):
        from_json({**to_json(run.stream()), key: value})


def test_an_allocation_out_of_its_order_is_refused() -> None:
    run = Script()
    run.make(10)
    run.make(20)
    run.events.reverse()
    with pytest.raises(ValueError, match="allocation 1 is made where 0 is the next"):
        to_json(run.stream())
