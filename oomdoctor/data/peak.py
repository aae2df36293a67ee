"""The batch that will be the peak, beside the one in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.data.job import Job, Part
    from oomdoctor.data.lengths import Lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of `rows` sequences, padded to `length`, with the bytes that follow."""

    rows: int
    length: int
    parts: tuple[Part, ...] = ()

    @property
    def tokens(self) -> int:
        """Return the tokens of one forward pass."""
        return self.rows * self.length

    @property
    def bytes(self) -> int:
        """Return the bytes that grow with the batch, 0 where the formulas lack facts."""
        return sum(part.bytes for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The largest batch of an epoch and the median one.

    `constant` says that all batches have one size, by packing or by padding to the maximum.
    """

    largest: Batch
    median: Batch
    constant: bool
    missing: tuple[str, ...] = ()

    @property
    def factor(self) -> float:
        """Return how many times the median batch's tokens the largest has."""
        return self.largest.tokens / self.median.tokens if self.median.tokens else 1.0


def peak_of(lengths: Lengths, *, rows: int, limit: int, constant: bool, job: Job) -> Peak:
    """Return both batches; `lengths` are those after truncation, `limit` the row of a fixed size.

    The longest sequence comes once in every epoch, whatever the order is.
    """
    if constant:
        longest = median = limit
    else:
        longest, median = lengths.longest, lengths.longest_quantile(rows, 0.5)
    return Peak(
        largest=_batch(job, rows, longest),
        median=_batch(job, rows, median),
        constant=constant,
        missing=job.missing(),
    )


def _batch(job: Job, rows: int, length: int) -> Batch:
    return Batch(rows=rows, length=length, parts=job.parts(rows=rows, length=length))
