"""Prefixes that nearly every line shares, also in short logs, and what only looks like them."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text

LINES = ("Traceback (most recent call last):", "RuntimeError: CUDA out of memory.")


def texts(text: str) -> list[tuple[int | None, str]]:
    return [(line.rank, line.text) for line in clean(source_of_text(text)).lines]


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [("3: ", 3), ("[3] ", 3), ("node1: ", None), ("[pod/job-0/main] ", None), ("w-1  | ", None)],
)
def test_two_lines_that_start_alike_lose_their_prefix(prefix: str, rank: int | None) -> None:
    assert [(rank, line) for line in LINES] == texts("\n".join(prefix + line for line in LINES))


def test_a_time_is_no_name_of_a_machine() -> None:
    text = "\n".join(f"2026-11-30T08:30:45Z {line}" for line in LINES * 3)

    assert [(None, line) for line in LINES * 3] == texts(text)


def test_numbers_that_count_lines_stay() -> None:
    text = "\n".join(f"[{at}] loss 2.5" for at in range(12))

    assert [(None, line) for line in text.split("\n")] == texts(text)


def test_a_table_behind_a_stamp_keeps_its_first_bar() -> None:
    row = "|  GPU   Name   | Memory-Usage |"

    assert [(None, row)] == texts(f"2026-11-30 08:30:45,123 {row}")


def test_a_record_keeps_its_time_and_the_rank_inside() -> None:
    text = '{"log": "[rank2]: boom\\n", "stream": "stderr", "time": "2026-11-30T08:30:45Z"}'

    (line,) = clean(source_of_text(text)).lines

    assert (line.rank, line.text, line.stamp) == (2, "boom", "2026-11-30T08:30:45Z")


def test_the_second_writer_of_a_line_has_the_rank_of_the_line() -> None:
    text = "[rank3]:  9%|#  | 1/11 [00:01<00:13,  1.33s/it]RuntimeError: CUDA out of memory."

    assert [rank for rank, _ in texts(text)] == [3, 3]
