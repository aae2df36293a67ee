"""Values of an estimate: peaks, what they are made of, and on which card they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job

FITS = "fits"
TIGHT = "tight"
OOM = "oom"
SIMULATE = "simulate"
FORMULA = "formula"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePeak:
    """The peak within one phase (load, step 1, evaluation, ...); reserved only where simulated."""

    name: str
    allocated_bytes: int
    reserved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBytes:
    """What one part (weights, activation, ...) holds at the peak; `formula` says how, if closed."""

    name: str
    bytes: int
    formula: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who holds bytes at the peak: a module path with its operator, category, phase and part."""

    module: str
    operator: str
    category: str
    phase: str
    part: str
    bytes: int
    allocations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePoint:
    """A point of the time line: the highest allocated bytes among `events` events from `at` on."""

    at: int
    phase: str
    part: str
    allocated_bytes: int
    reserved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardVerdict:
    """The answer for one card: fits, tight or oom.

    `capacity_bytes` is what the card reports to PyTorch; `margin_low_bytes` and
    `margin_high_bytes` are what stays free with the widest and the narrowest band of what is
    outside the allocator (negative: missing). `failed` says where the first request fails.
    """

    card: str
    capacity_bytes: int
    verdict: str
    needed_low_bytes: int
    needed_high_bytes: int
    margin_low_bytes: int
    margin_high_bytes: int
    failed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the batch x length table; `traced` is false where it was interpolated."""

    batch: int
    seq_len: int
    allocated_bytes: int
    reserved_bytes: int | None
    traced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The predicted peak of a job on one card.

    `outside_low_bytes` and `outside_high_bytes` are the band of what no allocator counts (CUDA
    context, libraries, NCCL); `band` is the relative uncertainty of the peak itself, from
    measured errors of the engine that spoke. `fallback` says why the simulation did not speak.
    """

    job: Job
    engine: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    peak_phase: str
    outside_low_bytes: int
    outside_high_bytes: int
    band: float
    phases: tuple[PhasePeak, ...]
    parts: tuple[PartBytes, ...]
    owners: tuple[Owner, ...] = ()
    line: tuple[LinePoint, ...] = ()
    verdicts: tuple[CardVerdict, ...] = ()
    assumptions: tuple[str, ...] = ()
    host_bytes: int | None = None
    fallback: str | None = None
    versions: Mapping[str, str]
