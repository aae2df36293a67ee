"""Values of an estimate: peaks, what they are made of, and on which card they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job
    from oomdoctor.model.serving import Serving

FITS = "fits"
TIGHT = "tight"
OOM = "oom"
SIMULATE = "simulate"
FORMULA = "formula"
VIRTUAL = "virtual"


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
    """One cell of the batch x length table; `traced` is false where it was computed from others.

    `verdicts` are those of each card of the estimate, in their order.
    """

    batch: int
    seq_len: int
    allocated_bytes: int
    reserved_bytes: int | None
    traced: bool
    verdicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Peaks for every batch and length, a row for each batch.

    `how` says which cells were traced and how the others were computed; `error` is by how much
    (of the traced peak) a computed cell differed from its trace, None where none was compared.
    """

    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    rows: tuple[tuple[Cell, ...], ...]
    how: str
    error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The largest batch or length on one card, the other one as in the job.

    `what` is "batch" or "length"; `largest` fits, 0 where not even one does. `capped` says that
    more was not tried (the longest context of the model, say).
    """

    card: str
    what: str
    largest: int
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The same job with something changed: other settings of the allocator, or what-if."""

    name: str
    engine: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    verdicts: tuple[CardVerdict, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one row more, and 1,000 tokens more in each row, add to the peak."""

    row_bytes: int
    thousand_tokens_bytes: int | None
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One way to fit a model on a card: the settings, their peak, and what they cost.

    `quality`, `speed` are ranks, 0 the best; `engine` says whose peak it is.
    """

    settings: Mapping[str, str]
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    verdict: CardVerdict
    quality: float
    time_factor: float
    engine: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """The settings that fit a model on a card, best first, and what was tried in vain."""

    card: str
    capacity_bytes: int
    steps: tuple[PlanStep, ...]
    tried: int
    least_bytes: int | None = None
    assumptions: tuple[str, ...] = ()
    fallback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The predicted peak of a job on one card.

    `outside_low_bytes` and `outside_high_bytes` are the band of what no allocator counts (CUDA
    context, libraries, NCCL); `band` is by which share the allocated peak may be off, `need_band`
    by which share what must be reserved, which verdicts allow for, both from measured errors of the
    engine that spoke. `fallback` says why the simulation did not speak.
    `parts` are the six that people know and add up to the allocated peak, as `categories` do.
    `device` is the card whose kernels were traced, `origin` who made the stream, `alloc_conf` the
    allocator's settings, `told` what was seen beside the figures. `variants` differ by what-if,
    `alloc_confs` by those settings. `serving` is there for a server: how each card's memory is
    divided.
    """

    job: Job
    engine: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    peak_phase: str
    outside_low_bytes: int
    outside_high_bytes: int
    band: float
    need_band: float
    phases: tuple[PhasePeak, ...]
    parts: tuple[PartBytes, ...]
    categories: tuple[PartBytes, ...] = ()
    owners: tuple[Owner, ...] = ()
    line: tuple[LinePoint, ...] = ()
    verdicts: tuple[CardVerdict, ...] = ()
    assumptions: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    host_bytes: int | None = None
    fallback: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    device: str = ""
    origin: str = ""
    alloc_conf: str = ""
    outside_says: str = ""
    rates: Rates | None = None
    limits: tuple[Limit, ...] = ()
    table: Table | None = None
    variants: tuple[Variant, ...] = ()
    alloc_confs: tuple[Variant, ...] = ()
    serving: Serving | None = None
