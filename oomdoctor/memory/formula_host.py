"""Main memory of a job by formula: the process, loading, offloaded states, loader workers.

| part | bytes |
|---|---|
| the process with torch and its CUDA libraries | about 2.5 GiB resident, an estimate |
| loading to the host first | parameters x bytes of their dtype, until they are moved |
| offloaded states | trained parameters x 16 bytes: fp32 weights, two moments, gradients |
| loader workers | about 0.35 GiB each where batches are text, an estimate |
| paged optimizer | its states, while the card is full |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.memory.tape import Param
    from oomdoctor.model.job import Job

GIB = 1 << 30
PROCESS = int(2.5 * GIB)
WORKER = int(0.35 * GIB)
OFFLOADED = 16


def host_bytes(job: Job, weights: Iterable[tuple[Param, int]], *, workers: int = 0) -> int:
    """Return the most that one rank holds in main memory, in words of the table above."""
    counted = list(weights)
    whole = sum(p.count * p.width * times for p, times in counted)
    trained = sum(p.count * times for p, times in counted if p.trains)
    ranks = max(1, job.sharding.ranks)
    loading = job.loading
    if loading is None:
        direct = job.quant is not None or job.framework == "trl" or not job.trains
        loading = "direct" if direct else "moved"
    staged = whole if loading == "moved" else 0
    kept = 0
    if job.optimizer is not None and job.optimizer.offload == "cpu":
        kept += OFFLOADED * trained // ranks
    if job.sharding.offload_params:
        kept += 2 * sum(p.count * times for p, times in counted) // ranks
    if job.optimizer is not None and job.optimizer.paged:
        kept += 2 * trained
    return PROCESS + max(staged, kept) + workers * WORKER
