"""Messages between the command and the worker."""

from __future__ import annotations

import pytest

from oomdoctor.lab import protocol
from oomdoctor.lab.protocol import (
    Failure,
    Hello,
    Progress,
    ProtocolError,
    TraceRequest,
    TraceResult,
    decode,
    encode,
    from_line,
    to_line,
)
from oomdoctor.model.job import CardSpec, EvalSpec, Job, LoraSpec, ModelSpec, QuantSpec

CARD = CardSpec(name="A100", capability=(8, 0), processors=108, total_bytes=85 << 30)
MODEL = ModelSpec(name="tiny", config={"model_type": "llama", "rope": {"theta": 1e4}}, source="x")
JOB = Job(
    model=MODEL,
    lora=LoraSpec(targets=("q_proj", "v_proj"), alpha=32),
    quant=QuantSpec(kind="nf4"),
    evaluation=EvalSpec(batch=2, seq_len=8),
    versions={"torch": "2.13.0"},
)


@pytest.mark.parametrize(
    "message",
    [
        Hello(pid=7, versions={"torch": "2.13.0"}),
        TraceRequest(job=JOB, card=CARD, phases=("load", "step 1")),
        TraceRequest(job=Job(model=MODEL, optimizer=None), card=CARD),
        Progress(text="step 1", seconds=0.5),
        TraceResult(stream={"events": [0, -1]}, seconds=1.0, rss_bytes=5),
        Failure(kind="unsupported", message="no such model", hint="say --model"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_comes_back_as_it_was_sent(message: object) -> None:
    assert message == from_line(to_line(message))


def test_every_message_is_one_line() -> None:
    line = to_line(Failure(kind="crashed", message="first\nsecond"))

    assert [line.index(b"\n")] == [len(line) - 1]


def test_fields_of_a_later_version_are_passed_over() -> None:
    sent = {**encode(CARD), "colour": "green"}

    assert decode(CardSpec, sent) == CARD


def test_fields_of_an_earlier_version_have_their_default() -> None:
    assert Job(model=MODEL) == decode(Job, {"model": encode(MODEL)})


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ProtocolError, match="CardSpec: without capability, processors"):
        decode(CardSpec, {"name": "A100", "total_bytes": 1})


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("batch", "two", r"Job\.batch: expected int"),
        ("batch", True, r"Job\.batch: expected int"),
        ("lora", {"targets": "q_proj"}, r"Job\.lora"),
        ("versions", ["torch"], r"Job\.versions: expected an object"),
        ("clip_norm", "1", r"Job\.clip_norm"),
    ],
)
def test_a_value_of_another_type_is_refused(field: str, value: object, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        decode(Job, {"model": encode(MODEL), field: value})


def test_a_pair_of_three_is_refused() -> None:
    with pytest.raises(ProtocolError, match="expected 2 values"):
        decode(CardSpec, {**encode(CARD), "capability": [8, 0, 1]})


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b'{"type": "dance"}'])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        from_line(line)


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ProtocolError, match="cannot be sent"):
        to_line(TraceResult(stream={"t": object()}, seconds=0, rss_bytes=0))


def test_messages_have_kinds_of_their_own() -> None:
    assert len(protocol.MESSAGES) == len(set(protocol.MESSAGES.values()))
