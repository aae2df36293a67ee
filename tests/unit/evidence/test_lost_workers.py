"""Workers that are gone without a reason: no reader says that memory was it."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import host_signs
from tests.unit.evidence.documents import document_of


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: DataLoader worker (pid 5) is killed by signal: Terminated.",
        "RuntimeError: DataLoader worker (pid 5) is killed by signal: Segmentation fault.",
        (
            "RuntimeError: One or more background workers are no longer alive. Exiting. Please"
            " check the print statements above for the actual error message"
        ),
        "RuntimeError: Some background worker is 6 feet under. Yuck.",
        (
            "distributed.scheduler.KilledWorker: Attempted to run task 'load-3' on 4 different"
            " workers, but all those workers died while running it."
        ),
    ],
)
def test_a_worker_that_is_gone_is_lost_and_nothing_more(text: str) -> None:
    (failure,) = host_signs.read(document_of(text)).failures

    assert {one.key: one.value for one in failure.facts} == {"launch.worker_lost": True}


def test_a_worker_that_was_killed_is_said_to_be() -> None:
    text = (
        "RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.\n"
        "RuntimeError: DataLoader worker (pid(s) 9) exited unexpectedly"
    )

    facts = {one.key for one in host_signs.read(document_of(text)).facts}

    assert {"host.killed", "host.worker_killed"} <= facts
