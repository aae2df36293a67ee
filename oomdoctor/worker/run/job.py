"""Run a job, phase by phase, on a device that is real, virtual or fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer


def run_job(
    job: Job, device: torch.device, observer: Observer, *, phases: Sequence[str] = ()
) -> None:
    """Run the phases that the job has (or those of them that are named) and tell the observer.

    Raises UnsupportedError where the job cannot be built from its description.
    """
    raise NotImplementedError
