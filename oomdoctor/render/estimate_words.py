"""Words for estimates: the job in a line, verdicts, margins, places in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.model.job import Job, OptimizerSpec

VERDICTS = {"fits": "fits", "tight": "tight", "oom": "out of memory"}


def verdict_words(verdict: str) -> str:
    """Print a verdict."""
    return VERDICTS.get(verdict, verdict)


def margin_words(size: int) -> str:
    """Print what stays free; what is missing has its minus."""
    return format_size(size) if size >= 0 else f"{format_size(-size)} missing"


def minus(size: int) -> str:
    """Print a difference with its sign."""
    return f"+{format_size(size)}" if size > 0 else (format_size(size) if size else "same")


def named_part(phase: str, part: str) -> str:
    """Print a part of a phase: `step 2, backward`."""
    return ", ".join(word for word in (phase, part) if word) or "before"


def job_words(job: Job) -> str:
    """Print a job in a line."""
    if job.entry is not None:
        return f"the user's own code, {job.entry.place}"
    words = [_method(job), job.dtype + (f" with {job.amp} autocast" if job.amp else "")]
    if job.image_size is not None:
        words.append(f"batch {format_count(job.batch)} of {job.image_size} x {job.image_size}")
    else:
        words.append(f"batch {format_count(job.batch)} x {format_count(job.seq_len)} tokens")
    if job.grad_accum > 1:
        words.append(f"{job.grad_accum} micro-steps")
    words.append(f"{job.attention} attention")
    if job.checkpointing:
        words.append("checkpointing")
    if job.optimizer is not None:
        words.append(_optimizer(job.optimizer))
    if job.sharding.kind:
        words.append(f"{job.sharding.kind} over {job.sharding.ranks} ranks")
    return ", ".join(words)


def _method(job: Job) -> str:
    quantised = f" on a base in {job.quant.kind}" if job.quant else ""
    if job.lora is None:
        return (f"{job.task}, all parameters" if job.trains else job.task) + quantised
    kind = "DoRA" if job.lora.dora else "LoRA"
    targets = ", ".join(job.lora.targets) if job.lora.targets else "PEFT's own targets"
    return f"{job.task}, {kind} of rank {job.lora.rank} on {targets}{quantised}"


def _optimizer(optimizer: OptimizerSpec) -> str:
    where = f", states on {optimizer.offload}" if optimizer.offload else ""
    paged = "paged " if optimizer.paged else ""
    return f"{paged}{optimizer.name}{where}"
