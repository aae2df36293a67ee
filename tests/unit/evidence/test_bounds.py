"""Logs of any length cost bounded time: thousands of failures, endless stacks, endless numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.haystack import LAST_LINES, MOST_LINES, haystack_of
from oomdoctor.evidence.readers import MOST_TRACED, read_all
from oomdoctor.evidence.sniff import kind_of
from oomdoctor.evidence.source import source_of_text
from oomdoctor.evidence.stacks import MOST_FRAMES, stacks
from tests.hang import no_hang
from tests.unit.evidence.documents import document_of

if TYPE_CHECKING:
    from oomdoctor.model.core import Failure, Reading

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 9, in <module>\n'
    "    loss.backward()\n"
)
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total"
    " capacity of 23.50 GiB of which 1.00 GiB is free."
)


def read(text: str) -> Reading:
    return read_all(clean(source_of_text(text)))


def value(failure: Failure, key: str) -> object:
    return next((fact.value for fact in failure.facts if fact.key == key), None)


def test_thousands_of_ranks_that_fail_are_read_in_seconds() -> None:
    lines = f"{TRACEBACK}{MESSAGE}".split("\n")
    text = "\n".join(f"[rank{rank}]: {line}" for rank in range(MOST_LINES + 100) for line in lines)
    with no_hang(seconds=20):
        reading = read(text)
    assert len(reading.failures) == MOST_LINES
    assert value(reading.failures[0], "trace.function") == "<module>"


def test_messages_beyond_the_bound_are_noted_and_the_last_ones_kept() -> None:
    text = "\n".join(f"{MESSAGE}\nstep {at}: went on" for at in range(MOST_LINES + 700))
    reading = read(text)
    assert f"{MOST_LINES + 700:,} lines speak of memory running out" in reading.notes[0]
    assert reading.failures[0].order == 1
    assert reading.failures[-1].order == 2 * (MOST_LINES + 700) - 1


def test_failures_that_ended_a_run_are_traced_before_those_that_were_caught() -> None:
    caught = f"step 7/90 | UserWarning: {MESSAGE.partition(': ')[2]}\n" * (MOST_TRACED + 50)
    reading = read(f"{caught}{TRACEBACK}{MESSAGE}")
    assert value(reading.failures[0], "oom.caught") is True
    assert value(reading.failures[-1], "trace.code") == "loss.backward()"


def test_the_middle_of_an_endless_recursion_is_left_out() -> None:
    calls = "".join(f'  File "m.py", line {at}, in call\n    call()\n' for at in range(5000))
    (stack,) = stacks(document_of(f"Traceback (most recent call last):\n{calls}RecursionError: x"))
    assert len(stack.frames) == MOST_FRAMES
    assert (stack.frames[0].line, stack.frames[-1].line, stack.hidden) == (0, 4999, True)


def test_a_number_of_thousands_of_digits_is_an_absurd_size_and_no_fault() -> None:
    reading = read(MESSAGE.replace("1.25", "9" * 5000))
    assert [note for note in reading.notes if "failed" in note] == []
    assert value(reading.failures[0], "oom.absurd_size") is True


def test_thousands_of_decimals_are_no_fault() -> None:
    reading = read(MESSAGE.replace("1.25", "1." + "25" * 3000))
    assert [note for note in reading.notes if "failed" in note] == []
    assert value(reading.failures[0], "oom.capacity") == int(23.5 * 1024**3)


def test_an_epoch_of_hundreds_of_digits_is_no_infinity() -> None:
    reading = read(f"{{'loss': 1.0, 'epoch': {'9' * 400}}}\n{MESSAGE}")
    assert value(reading.failures[0], "run.epoch") != float("inf")


def test_lines_that_tell_are_the_first_and_the_last_ones() -> None:
    haystack = haystack_of(document_of("\n".join(["out of memory"] * (MOST_LINES + 10))))
    told = haystack.telling(["out of memory"])
    assert len(told) == MOST_LINES
    skipped = 10
    assert told[-LAST_LINES - 1 : -LAST_LINES + 1] == [
        MOST_LINES - LAST_LINES - 1,
        MOST_LINES - LAST_LINES + skipped,
    ]


def test_blank_columns_of_a_deep_document_do_not_slow_its_recognition() -> None:
    deep = "\n".join(f"{' ' * at}k{at}:" for at in range(3000))
    with no_hang(seconds=5):
        kind = kind_of(source_of_text(deep, name="deep.yaml"))
    assert kind == "config"


def test_json_with_comments_or_errors_is_a_config_by_its_name() -> None:
    for text in ('{\n// why\n"a": 1}', "[[[1]]]", '{"a": '):
        assert kind_of(source_of_text(text, name="ds.json")) == "config"
