"""The worker's tests need torch and transformers; where these are missing none is collected."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.model.job import Job
    from tests.worker.ledger import Watching

HERE = Path(__file__).parent
os.environ.setdefault("DS_ACCELERATOR", "cuda")  # DeepSpeed asks once, when anybody imports it
collect_ignore_glob = [] if find_spec("torch") and find_spec("transformers") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings of the libraries are none of ours."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session", autouse=True)
def _card_before_the_host() -> None:
    """Show autograd the fake card before a test runs a backward pass on the host.

    Its engine counts devices once, at the first backward pass of a process (torch 2.13).
    """
    if find_spec("torch") is None:
        return
    import torch

    from oomdoctor.model.job import CardSpec
    from oomdoctor.worker.fake.trace import trace_run

    def step(device: torch.device, _: object) -> None:
        torch.ones(2, device=device, requires_grad=True).sum().backward()

    card = CardSpec(name="first", capability=(8, 0), processors=108, total_bytes=80 << 30)
    trace_run(step, card)


@pytest.fixture(autouse=True)
def _offline_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched, and tiny products are not spread over threads."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)


@pytest.fixture
def run() -> Iterator[Callable[[Job], Watching]]:
    """Run a job on the host and return what was heard and counted.

    What a run leaves behind is in cycles: it is counted until the test is over.
    """
    import gc

    import torch

    from oomdoctor.worker.run.job import run_job
    from tests.worker.ledger import Ledger, Watching

    def runner(job: Job) -> Watching:
        ledger = Ledger()
        with ledger:
            watching = Watching(ledger)
            run_job(job, torch.device("cpu"), watching)
            watching.close()
        return watching

    gc.disable()
    yield runner
    gc.enable()
