"""A run that ended badly is never taken for a run without a failure."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of

BAD_ENDS = [
    "ValueError: Expected input batch_size (32) to match target batch_size (31).",
    "Segmentation fault (core dumped)",
    "Fatal Python error: Aborted",
    "terminate called after throwing an instance of 'c10::Error'",
    "Process finished with exit code 1",
    "Traceback (most recent call last):",
]
TOLD_BY_LAUNCHERS = [
    "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 4711",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "  exitcode  : 1 (pid: 4711)",
    "[ERROR] [launch.py:325:sigkill_handler] ['python', 'a.py'] exits with return code = 1",
    "subprocess.CalledProcessError: Command 'python a.py' returned non-zero exit status 1.",
]
GOOD_ENDS = [
    "Process finished with exit code 0",
    "[INFO] [launch.py:347:main] Process 4711 exits successfully.",
    "Error: no tensorboard was found, logging to the terminal",
    "training ended without an error or exception, exit code 0",
    "  error rate: 0.12",
    "kernel size: 3, fault tolerance: on",
]


@pytest.mark.parametrize(
    ("text", "kind"),
    [*((text, "other") for text in BAD_ENDS), *((text, "lost") for text in TOLD_BY_LAUNCHERS)],
)
def test_a_bad_end_is_a_failure_and_what_a_launcher_alone_tells_stays_open(
    text: str, kind: str
) -> None:
    (failure,) = read_all(document_of(f"loading data\n{text}")).failures
    assert (failure.kind, failure.order) == (kind, 2)
    assert [
        fact.key for fact in failure.facts if fact.key.startswith(("failure.", "host.", "oom."))
    ] == ["failure.other"]


@pytest.mark.parametrize("text", GOOD_ENDS)
def test_words_of_failure_in_a_good_end_are_none(text: str) -> None:
    assert read_all(document_of(f"loading data\n{text}")).failures == ()


def test_an_exception_after_which_training_goes_on_was_survived() -> None:
    text = "ConnectionError: tracker not reached\nstep 10/300 loss 1.9\nstep 20/300 loss 1.7"
    assert read_all(document_of(text)).failures == ()


def test_the_exception_is_named_rather_than_the_launcher_that_follows_it() -> None:
    text = "Killing subprocess 4711\nValueError: bad value"
    (failure,) = read_all(document_of(text)).failures
    assert failure.line_quote.text == "ValueError: bad value"


@pytest.mark.parametrize(("percent", "kind"), [("91.5", "host-oom"), ("34.0", "lost")])
def test_a_launcher_ending_its_children_in_a_full_machine_is_a_kill(
    percent: str, kind: str
) -> None:
    text = (
        f"[utils.py:1:see_memory_usage] CPU Virtual Memory:  used = 57.2 GB, percent = {percent}%\n"
        "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 4711"
    )
    (failure,) = read_all(document_of(text)).failures
    assert kind == failure.kind
    assert (kind == "host-oom") == any(fact.key == "host.killed" for fact in failure.facts)


def test_a_known_failure_is_not_joined_by_signs_of_its_wake() -> None:
    text = "RuntimeError: CUDA out of memory.\nKilling subprocess 1\nSegmentation fault"
    assert [failure.kind for failure in read_all(document_of(text)).failures] == ["gpu-oom"]


def test_a_launcher_that_names_the_signal_of_a_crash_leaves_nothing_open() -> None:
    text = "ChildFailedError:\n  exitcode  : -11 (pid: 4711)"
    (failure,) = read_all(document_of(text)).failures
    assert failure.kind == "other"
