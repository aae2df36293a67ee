"""What a plan tries: what is trained, in which precision, in which micro-batches.

Qualities are ranks by what is known to matter: all parameters before an adapter, a larger rank on
more modules before a smaller one, a base in 16 bits before one in 4. Times are rules of thumb,
relative to training all parameters without checkpointing.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.estimating.flags import ADAPTER, facts_of
from oomdoctor.record import NamedTuple, dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.estimating.describe import Source
    from oomdoctor.model.job import CardSpec, Job

CHECKPOINTING_TIME = 1.33
ADAPTER_TIME, QUANTISED_TIME = 0.75, 1.0
FULL_PASS = 8192
"""Tokens of a micro-step from which on more of them no longer make a card faster."""
SLOWER = 0.12
"""Time that halving the tokens below that costs."""
GLOBAL_BATCH = 16
MOST_ROWS = 1024
AMPERE = (8, 0)
VARIED = ("method", "dtype", "amp", "optimizer", "lora-r", "lora-targets")
RULES = (
    "times are rules of thumb, relative to training all parameters without checkpointing:"
    f" x {CHECKPOINTING_TIME} with checkpointing, x {ADAPTER_TIME} for an adapter on 16 bits,"
    f" x {QUANTISED_TIME} on 4 bits, {SLOWER:.0%} more for each halving below {FULL_PASS:,} tokens"
    " in a pass"
)


class Choice(NamedTuple):
    """What is trained and how: settings by flag, time, and what it is in words."""

    settings: Mapping[str, str]
    time: float
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One job to try: its settings by flag, rank of quality (0 best) and time."""

    job: Job
    settings: Mapping[str, str]
    quality: int
    time: float
    note: str


def choices(*, half: str) -> Iterator[Choice]:
    """Yield what can be trained, best quality first; `half` is the card's 16-bit dtype."""
    full = {"method": "full", "optimizer": "adamw"}
    mixed = {**full, "dtype": "fp32", "amp": half}
    yield Choice(mixed, 1.0, f"all parameters, fp32 weights under {half} autocast")
    if half == "bf16":
        pure = {**full, "dtype": "bf16", "amp": "none"}
        yield Choice(pure, 0.95, "all parameters in bf16: small updates are rounded away")
        small = {**pure, "optimizer": "adamw_8bit"}
        yield Choice(small, 0.95, "all parameters in bf16, states in 8 bits")
    own = {"dtype": half, "amp": "none" if half == "bf16" else half, "optimizer": "adamw"}
    for method, time, base in (
        ("lora", ADAPTER_TIME, f"a base in {half}"),
        ("qlora", QUANTISED_TIME, "a base in 4 bits"),
    ):
        for rank in ("64", "16"):
            settings = {**own, "method": method, "lora-r": rank, "lora-targets": "all-linear"}
            yield Choice(settings, time, f"an adapter on all linear layers of {base}")
        settings = {**own, "method": method, "lora-r": "8"}
        yield Choice(settings, time, f"an adapter on PEFT's own targets in {base}")


def candidates(source: Source, card: CardSpec, fixed: Mapping[str, str]) -> list[Candidate]:
    """Return every job to try; what `fixed` names by flag stays as it is there."""
    half = "bf16" if card.capability >= AMPERE else "fp16"
    kept = {name: value for name, value in fixed.items() if name in VARIED}
    found: list[Candidate] = []
    seen: set[tuple[tuple[str, str], ...]] = set()
    for quality, choice in enumerate(choices(half=half)):
        if kept.get("method", choice.settings["method"]) != choice.settings["method"]:
            continue
        settings = {**choice.settings, **kept}
        if settings["method"] == "full":  # of an adapter's flags none is for this one
            settings = {name: value for name, value in settings.items() if name not in ADAPTER}
        mark = tuple(sorted(settings.items()))
        if mark in seen:
            continue
        seen.add(mark)
        job = source.with_facts(facts_of(settings), flags=tuple(settings)).job
        if not job.trains:
            raise UsageError(
                f"a plan is for training; the task of this job is {job.task}",
                hint="`oomdoctor estimate --table` shows batches and lengths of generation",
            )
        for made, more, time in _shaped(job, fixed):
            found.append(
                Candidate(
                    job=made,
                    settings={**settings, **more},
                    quality=quality,
                    time=choice.time * time,
                    note=choice.note,
                )
            )
    return found


def _shaped(job: Job, fixed: Mapping[str, str]) -> Iterator[tuple[Job, dict[str, str], float]]:
    """Yield a job with every micro-batch of its global batch, with and without checkpointing."""
    ways: tuple[str | None, ...] = (None, job.checkpointing or "non-reentrant")
    if "checkpointing" in fixed:
        ways = (job.checkpointing,)
    for size, accumulated in _micro_batches(job, fixed):
        tokens = max(size * job.seq_len, 1)
        slow = 1 + (0.0 if job.image_size else SLOWER * max(0.0, log2(FULL_PASS / tokens)))
        for way in ways:
            made = replace(job, batch=size, grad_accum=accumulated, checkpointing=way)
            settings = {
                "batch": str(size),
                "grad-accum": str(accumulated),
                "checkpointing": "false" if way is None else "true",
            }
            yield made, settings, slow * (1.0 if way is None else CHECKPOINTING_TIME)


def _micro_batches(job: Job, fixed: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return (rows of a micro-step, micro-steps), so that a step keeps its rows."""
    if "batch" in fixed:
        return [(job.batch, job.grad_accum)]
    whole = job.batch * job.grad_accum
    if whole == 1:
        whole = GLOBAL_BATCH
    sizes = [size for size in range(1, min(whole, MOST_ROWS) + 1) if whole % size == 0]
    return [(size, whole // size) for size in sizes]
