"""What no allocator counts: the CUDA context, what libraries load and hold, NCCL's buffers.

Public messages of PyTorch that tell both what the process holds and what the allocator reserved
leave 0.30 to 0.86 GiB for one process (cards of 4 to 80 GB, 2019 to 2026). It depends on card,
driver and on which libraries were used so far, so that it is a band, and never left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.model.job import Job

GIB = 1 << 30
CONTEXT = (int(0.30 * GIB), int(0.86 * GIB))
# NCCL: 4 to 32 MiB of buffers for each channel and peer, and its kernels
COMMUNICATION = (int(0.15 * GIB), int(1.0 * GIB))
CONVOLUTION = (0, int(0.25 * GIB))
PICTURES = ("image-classification",)


class Outside(NamedTuple):
    """A band in bytes, and what it is made of; `share` of a card belongs to a serving engine."""

    low: int
    high: int
    says: str
    share: float = 0.0

    def on(self, total_bytes: int) -> Outside:
        """Return what is outside on a card of that size, its engine's share with it."""
        taken = int(self.share * total_bytes)
        return Outside(self.low + taken, self.high + taken, self.says)


def outside(job: Job) -> Outside:
    """Return the band for one process of a job."""
    low, high = CONTEXT
    said = ["CUDA context and libraries"]
    if _exchanges(job):
        low, high = low + COMMUNICATION[0], high + COMMUNICATION[1]
        said.append("NCCL")
    if job.task in PICTURES or job.image_size is not None:
        low, high = low + CONVOLUTION[0], high + CONVOLUTION[1]
        said.append("cuDNN")
    share = job.engine_share or 0.0
    if share:
        said.append(f"and beside that {100 * share:.0f} % of the card for vLLM")
    return Outside(low, high, ", ".join(said), share)


def _exchanges(job: Job) -> bool:
    shape = job.sharding
    return max(shape.ranks, shape.tensor, shape.pipeline, shape.context) > 1
