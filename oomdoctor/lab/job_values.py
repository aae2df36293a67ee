"""Sets the values of axes on a job: the job that a trial at these values runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.model.job import EvalSpec
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import TrialSpec, Value


def job_at(job: Job, values: Mapping[str, Value]) -> Job:
    """Return a job with the values of axes; UsageError for an axis that it does not have."""
    for name, value in values.items():
        setter = _SETTERS.get(name)
        if setter is None:
            known = ", ".join(_SETTERS)
            raise UsageError(f"a job has no axis {name}", hint=f"axes of a job: {known}")
        job = setter(job, int(value))
    return job


def job_of(spec: TrialSpec) -> Job:
    """Return the job of a trial, with the evaluation and the save that it asks for."""
    job = spec.job
    if job is None:
        raise UsageError("this trial runs a command, not a job")
    if spec.evaluates and job.evaluation is None:
        job = replace(job, evaluation=EvalSpec(batch=job.batch, seq_len=job.seq_len))
    return replace(job, saves=True) if spec.saves else job


def _batch(job: Job, value: int) -> Job:
    """Set rows; what generates or serves has them there."""
    job = replace(job, batch=value)
    if job.generation is not None and not job.trains:
        return replace(job, generation=replace(job.generation, batch=value))
    return job


def _length(job: Job, value: int) -> Job:
    job = replace(job, seq_len=value)
    if job.generation is not None and not job.trains:
        return replace(job, generation=replace(job.generation, prompt=value))
    return job


def _rank(job: Job, value: int) -> Job:
    if job.lora is None:
        raise UsageError("the job has no adapter, and so no rank", hint="its method is not LoRA")
    return replace(job, lora=replace(job.lora, rank=value))


def _evaluated_rows(job: Job, value: int) -> Job:
    spec = job.evaluation or EvalSpec(batch=value, seq_len=job.seq_len)
    return replace(job, evaluation=replace(spec, batch=value))


def _new_tokens(job: Job, value: int) -> Job:
    if job.generation is None:
        raise UsageError("the job generates nothing, and so has no new tokens")
    return replace(job, generation=replace(job.generation, new_tokens=value))


_SETTERS: dict[str, Callable[[Job, int], Job]] = {
    "batch": _batch,
    "seq": _length,
    "lora_rank": _rank,
    "resolution": lambda job, value: replace(job, image_size=value),
    "new_tokens": _new_tokens,
    "accumulation": lambda job, value: replace(job, grad_accum=value),
    "eval_batch": _evaluated_rows,
}
AXES_OF_A_JOB = tuple(_SETTERS)
