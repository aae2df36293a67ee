"""Trace a job on a fake card: the entry of this package."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

from oomdoctor.worker.errors import ShimFailedError, UnsupportedError
from oomdoctor.worker.fake.card import FakeCard
from oomdoctor.worker.fake.host_trace import trace_on_host
from oomdoctor.worker.fake.selftest import require_fake_card
from oomdoctor.worker.fake.shim import Shim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.memory.stream import Stream
    from oomdoctor.model.job import CardSpec, Job
    from oomdoctor.worker.observer import Observer

FAKE_CARD = "fake card"
FAKE_HOST = "fake host"
MOST_MICRO_STEPS, MOST_RANKS = 1024, 4096
"""What is traced in reasonable time; the time grows with both."""


@cache
def shim() -> Shim:
    """Return this process's shim: what it put into torch stays until the process ends."""
    return Shim()


def trace(job: Job, card: CardSpec, *, phases: Sequence[str] = ()) -> Stream:
    """Return the allocations of a job on a card.

    Where this build of torch has no fake card, the job runs on fake tensors of the host: without
    the card's kernels and workspaces, which `facts["engine"]` says and an assumption explains.
    """
    from oomdoctor.worker.run.job import run_job

    _refuse_endless(job)

    def run(device: torch.device, observer: Observer) -> None:
        run_job(job, device, observer, phases=phases)

    return trace_run(run, card)


def _refuse_endless(job: Job) -> None:
    """Refuse a job whose trace would take hours, so that another engine can answer."""
    counts = (
        ("micro-steps in a step", job.grad_accum if job.trains else 1, MOST_MICRO_STEPS),
        ("ranks that share a model", job.sharding.ranks, MOST_RANKS),
    )
    for what, count, most in counts:
        if count > most:
            raise UnsupportedError(f"{count:,} {what} are too many to trace (at most {most:,})")


def trace_run(run: Callable[[torch.device, Observer], None], card: CardSpec) -> Stream:
    """Return the allocations of whatever runs on a device and tells an observer."""
    origin = f"simulated with torch {torch.__version__}"
    facts: dict[str, object] = {"torch": str(torch.__version__), "card": card.name}
    try:
        require_fake_card()
    except ShimFailedError as error:
        return trace_on_host(run, origin=origin, facts={**facts, "engine": FAKE_HOST}, why=error)
    with FakeCard(card, shim()) as fake:
        try:
            run(torch.device("cuda"), fake.tracker)
        except SystemError as error:
            # tensors that are freed while an error goes up through C++ take it away
            raise fake.kernels.failed or error from None
        tracker = fake.tracker
        facts["engine"] = FAKE_CARD
        facts["attention"] = list(fake.attention.chosen)
        fake.conclude()
        return tracker.stream(origin, facts)
