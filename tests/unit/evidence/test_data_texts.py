"""Pieces of the data that a log shows say nothing about the run."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.data_texts import without_data
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.source import source_of_text


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("{'question': 'RuntimeError: CUDA out of memory', 'answer': 'buy more'}", ""),
        ("row 7: {'prompt': 'why OOMKilled?', 'chosen': 'the limit'}", "row 7:"),
        ('{"messages": [{"role": "user", "content": "std::bad_alloc"}]}', ""),
        ('{"text": "### Question: what is out of memory? ### Answer: a fault"}', "{"),
        (
            "logger.py:3] Received request c-1: prompt: 'it was Killed', params: P(n=1)",
            "logger.py:3] Received request c-1:",
        ),
        ("decoded: <s> CUDA out of memory</s>", "decoded:"),
        ("User: why does it say CUDA out of memory?", ""),
    ],
)  # fmt: skip - one case per line
def test_the_data_go(line: str, kept: str) -> None:
    assert kept == without_data(line)


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        '{"level": "ERROR", "message": "CUDA out of memory", "prompt": "hello"}',
        '{"prompt": "hello", "error": "CUDA out of memory"}',
        "slurmstepd: error: Detected 1 oom_kill event in StepId=5.0.",
        "User: Killed",
        "    raise ValueError(f'out of memory: {prompt}')",
    ],
)
def test_what_a_program_says_stays(line: str) -> None:
    assert line == without_data(line)


def test_a_failure_behind_samples_is_found() -> None:
    text = (
        "{'question': 'CUDA out of memory. Tried to allocate 20.00 MiB'}\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )

    failures = read_all(clean(source_of_text(text))).failures

    assert [failure.order for failure in failures] == [2]
