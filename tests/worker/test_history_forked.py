"""Each recorded job has a fork of the worker to itself, whose end is told whatever it is."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.lab.protocol import Failure, RecordRequest, TraceResult
from oomdoctor.model.job import CardSpec
from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.history import forked
from tests.worker.jobs import JOB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Say = Callable[[str], None]

CARD = CardSpec(name="A100", capability=(8, 0), processors=108, total_bytes=80 << 30)
REQUEST = RecordRequest(job=JOB, card=CARD)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], tuple[Any, list[str]]]:
    """Return a function that lets a fork do something, and gives its answer and what it said."""
    import torch

    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", torch.cuda._is_in_bad_fork)
    monkeypatch.setattr(forked, "IMPORTED_FIRST", ())

    def asked(work: Any) -> tuple[Any, list[str]]:
        monkeypatch.setattr(forked, "_record", work)
        heard: list[str] = []
        return forked.recorded(REQUEST, heard.append), heard

    return asked


def test_a_fork_answers_and_says_where_it_is(answer: Any) -> None:
    def work(request: RecordRequest, _: Path, say: Say) -> dict[str, Any]:
        say("load")
        say("step 1, forward")
        return {"job": request.job.model.name, "pid": os.getpid()}

    result, heard = answer(work)

    assert isinstance(result, TraceResult)
    assert result.stream["job"] == JOB.model.name
    assert result.stream["pid"] != os.getpid()
    assert heard == ["load", "step 1, forward"]


def test_nothing_of_one_fork_is_left_for_the_next(answer: Any) -> None:
    kept: list[int] = []

    def work(*_: object) -> dict[str, Any]:
        kept.append(1)
        return {"kept": len(kept)}

    counts = [answer(work)[0].stream["kept"] for _ in range(2)]

    assert counts == [1, 1]
    assert kept == []


def test_an_error_of_the_job_is_told_with_its_kind(answer: Any) -> None:
    def work(*_: object) -> dict[str, Any]:
        raise UnsupportedError("no such model", hint="name another")

    assert answer(work)[0] == Failure(
        kind="unsupported", message="no such model", hint="name another"
    )


def test_want_of_memory_is_told_in_torchs_own_words(answer: Any) -> None:
    import torch

    def work(*_: object) -> dict[str, Any]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    assert answer(work)[0] == Failure(
        kind="oom",
        message="OutOfMemoryError in test_history_forked.py:work: CUDA out of memory. Tried to"
        " allocate 2.00 GiB.",
    )


def test_an_error_that_nobody_foresaw_is_told_in_a_line(answer: Any) -> None:
    def work(*_: object) -> dict[str, Any]:
        raise ValueError("first line\nsecond line")

    assert answer(work)[0] == Failure(kind="unsupported", message="ValueError: first line")


def test_a_fork_that_is_killed_leaves_the_worker_alive(answer: Any) -> None:
    def work(*_: object) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    found = answer(work)[0]

    assert found == Failure(kind="crashed", message="the run ended in the middle: SIGKILL")


def test_an_interrupt_in_the_fork_never_makes_it_a_second_worker(answer: Any) -> None:
    def work(*_: object) -> dict[str, Any]:
        raise KeyboardInterrupt

    found = answer(work)[0]

    assert found == Failure(kind="crashed", message="the run ended in the middle: exit code 1")


def test_a_worker_without_a_card_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a card here, real or virtual")
    monkeypatch.setenv(forked.LOG, "")  # taken back behind the test: only a fork may set it
    with pytest.raises(UnsupportedError, match="torch finds no CUDA device here"):
        forked._record(REQUEST, tmp_path / "log", lambda _: None)
