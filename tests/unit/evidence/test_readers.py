"""All readers together: failures carry their own stacks, and no reader's bug hides the others."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oomdoctor.evidence
from oomdoctor.evidence import readers
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.doors import DOORS
from oomdoctor.evidence.source import source_of_text
from tests.hang import no_hang
from tests.unit.evidence.documents import raw_text

if TYPE_CHECKING:
    from oomdoctor.model.core import Fact, Failure, Reading


def read(text: str) -> Reading:
    return readers.read_all(clean(source_of_text(text)))


def trace(name: str) -> Reading:
    return read(raw_text("tracebacks", f"{name}.txt"))


def value(failure: Failure, key: str) -> object:
    return next((fact.value for fact in failure.facts if fact.key == key), None)


def shared(reading: Reading, key: str) -> Fact | None:
    return next((fact for fact in reading.facts if fact.key == key), None)


def test_all_reader_modules_on_disk_are_listed() -> None:
    folder = oomdoctor.evidence.__path__[0]
    from pathlib import Path

    on_disk = {
        path.stem
        for path in Path(folder).glob("*.py")
        if "\nANCHORS" in (text := path.read_text(encoding="utf-8")) and "\ndef read(" in text
    }

    assert set(readers.READERS) == on_disk


@pytest.mark.parametrize("name", sorted(DOORS))
def test_the_door_of_a_reader_is_its_anchors(name: str) -> None:
    assert name in readers.READERS
    assert DOORS[name] == import_module(f"oomdoctor.evidence.{name}").ANCHORS


def test_each_rank_keeps_its_own_stack() -> None:
    first, second = trace("two_ranks_interleaved").failures

    assert (first.rank, value(first, "run.phase")) == (1, "loss")
    assert (second.rank, value(second, "run.phase")) == (0, "optimizer")
    assert value(first, "run.rank") == 1


def test_the_first_of_chained_exceptions_is_the_failure() -> None:
    reading = trace("chained")

    assert [value(one, "trace.function") for one in reading.failures[:1]] == ["encoder"]
    assert "traceback" in reading.closes


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("message_before_stack", "validate"),
        ("rich_box", "step"),
        ("notebook_8", "forward"),
        ("stripped_indent", "forward"),
        ("worker_log_prefixed", "forward_cuda"),
        ("no_code_lines", "forward"),
    ],
)
def test_the_stack_next_to_the_message_belongs_to_it(name: str, function: str) -> None:
    failure = trace(name).failures[0]

    assert failure.kind == "gpu-oom"
    assert value(failure, "trace.function") == function


def test_code_alone_tells_the_operator() -> None:
    assert value(trace("code_alone").failures[0], "run.operator") == "gelu"


def test_code_alone_above_its_carets_tells_the_operator() -> None:
    failure = trace("code_alone_with_carets").failures[0]

    assert value(failure, "run.operator") == "scaled_dot_product_attention"


def test_frames_that_break_off_behind_it_serve_the_message_of_another_rank() -> None:
    lines = raw_text("tracebacks", "frames_of_one_rank_message_of_another.txt").splitlines()
    failure = read("\n".join([lines[-1], *lines[:-1]])).failures[0]

    assert (failure.rank, value(failure, "run.phase")) == (3, "forward")


def test_frames_that_break_off_serve_a_message_that_lost_its_rank() -> None:
    lines = raw_text("tracebacks", "frames_of_one_rank_message_of_another.txt").splitlines()
    message = lines[-1].partition("]: ")[2]
    failure = read("\n".join([message, *lines[:-1]])).failures[0]

    assert (failure.rank, value(failure, "run.phase")) == (None, "forward")


def test_frames_that_break_off_serve_the_message_of_another_rank() -> None:
    failure = trace("frames_of_one_rank_message_of_another").failures[0]

    assert (failure.rank, value(failure, "run.rank")) == (3, 3)
    assert value(failure, "trace.code") == "return F.linear(input, self.weight, self.bias)"


def test_log_lines_tell_the_phase_where_the_stack_does_not() -> None:
    failure = read(raw_text("logs", "evaluation_after_training.txt")).failures[0]

    assert value(failure, "run.phase") == "eval"
    assert value(failure, "run.step") == 500
    assert value(failure, "trace.exception") == "RuntimeError"


def test_a_stack_that_settles_the_phase_outranks_the_log() -> None:
    text = "***** Running Evaluation *****\n" + raw_text("tracebacks", "plain_backward.txt")

    assert value(read(text).failures[0], "run.phase") == "backward"


def test_saving_before_the_failure_is_an_epoch_boundary() -> None:
    failure = read("Saving model checkpoint to out\nRuntimeError: CUDA out of memory.").failures[0]

    assert value(failure, "run.phase") == "save"
    assert value(failure, "run.epoch_boundary") is True


def test_the_text_has_one_quote_per_line() -> None:
    text = "[rank0]: one\n[rank0]: RuntimeError: CUDA out of memory.\ntwo"

    fact = shared(read(text), "log.text")

    assert fact is not None
    assert fact.value == "one\nRuntimeError: CUDA out of memory.\ntwo"
    assert [quote.line for quote in fact.quotes] == [1, 2, 3]


def test_a_long_text_is_kept_around_its_first_failure() -> None:
    lines = [f"line {n}" for n in range(9000)]
    lines[6000] = "RuntimeError: CUDA out of memory."

    fact = shared(read("\n".join(lines)), "log.text")

    assert fact is not None
    assert len(fact.quotes) == readers.TEXT_LINES
    assert fact.quotes[-1].line == 6001 + readers.LINES_AFTER_FAILURE


def test_an_exception_that_no_reader_knows_is_another_failure() -> None:
    (failure,) = read(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyError: "x"'
    ).failures

    assert failure.kind == "other"
    assert value(failure, "failure.other") is True
    assert value(failure, "trace.exception") == "KeyError"


def test_a_log_that_just_ends_says_where_it_was() -> None:
    reading = read("Loading checkpoint shards:  33%|███▎      | 1/3 [00:01<00:02]")

    phase = shared(reading, "run.phase")
    assert phase is not None
    assert phase.value == "load"
    assert reading.failures == ()


def test_a_reader_that_raises_becomes_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    from oomdoctor.evidence import growth

    def broken(document: object) -> Reading:
        raise ZeroDivisionError(str(type(document)))

    monkeypatch.setattr(growth, "read", broken)

    reading = read("step 1 max_mem: 3M\nRuntimeError: CUDA out of memory.")

    assert [note for note in reading.notes if "reader growth failed: ZeroDivisionError" in note]
    assert reading.failures


def test_an_empty_input_says_nothing() -> None:
    reading = read("")

    assert reading.facts == ()
    assert reading.failures == ()


def test_traces_belong_to_failures_and_not_to_the_input_as_a_whole() -> None:
    reading = trace("two_ranks_interleaved")

    assert [fact.key for fact in reading.facts if fact.key.startswith(("trace.", "run."))] == []


def test_a_message_that_is_repeated_with_its_traceback_has_that_traceback() -> None:
    message = "CUDA out of memory. Tried to allocate 2.00 GiB"
    text = "\n".join(
        [
            f"engine: caught: {message}",
            *["filler"] * 20,
            "Traceback (most recent call last):",
            '  File "a.py", line 1, in work',
            "    torch.empty(3)",
            f"torch.OutOfMemoryError: {message}",
        ]
    )

    first = read(text).failures[0]

    assert first.order == 1
    assert value(first, "trace.function") == "work"


@pytest.mark.parametrize(
    "piece",
    ["a.", " ", "[rank1]: ", "1%|", "| ", "│ ", "mem_ ", "step 1 ", "x = ", "File ", "10:00:00 "],
)
def test_a_line_of_60_kb_does_not_hang_a_reader(piece: str) -> None:
    with no_hang():
        reading = read(
            f'Traceback (most recent call last):\n  File "a", line 1\n{piece * 60_000}'[:60_000]
        )

    assert isinstance(reading.facts, tuple)


PARTS = st.sampled_from(
    [
        *raw_text("tracebacks", "worker_log_prefixed.txt").split("\n"),
        *raw_text("tracebacks", "rich_box.txt").split("\n"),
        *raw_text("tracebacks", "notebook_7_colab.txt").split("\n"),
        *raw_text("logs", "evaluation_after_training.txt").split("\n"),
        *raw_text("logs", "megatron.txt").split("\n"),
        "\x00\x1b[31m|\r\x08",
        "a" * 5000,
    ]
)


@given(st.lists(PARTS, max_size=30))
def test_any_mix_of_lines_is_read_without_a_fault(lines: list[str]) -> None:
    assert [note for note in read("\n".join(lines)).notes if "failed" in note] == []
