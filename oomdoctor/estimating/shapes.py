"""The two sizes of a job that people turn: rows and length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.few_layers import NESTED
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from oomdoctor.model.job import Job

POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx", "seq_length")
LONGEST = 1 << 20


class Shape(NamedTuple):
    """Rows of a batch and tokens of a row; the length is None where rows have none."""

    rows: int
    length: int | None


def shape_of(job: Job) -> Shape:
    """Return the rows and the length of a job."""
    if job.image_size is not None:
        return Shape(job.batch, None)
    if job.generation is not None and not job.trains:
        return Shape(job.generation.batch, job.generation.prompt)
    return Shape(job.batch, job.seq_len)


def with_shape(job: Job, shape: Shape) -> Job:
    """Return the job with other rows and length; what is as long as its rows stays so."""
    rows, length = shape
    if job.generation is not None and not job.trains:
        made = replace(job.generation, batch=rows, prompt=length or job.generation.prompt)
        return replace(job, batch=rows, seq_len=length or job.seq_len, generation=made)
    if length is None:
        return replace(job, batch=rows)
    evaluation, target = job.evaluation, job.target_len
    if evaluation is not None and evaluation.seq_len == job.seq_len:
        evaluation = replace(evaluation, seq_len=length)
    if target == job.seq_len:
        target = length
    return replace(job, batch=rows, seq_len=length, evaluation=evaluation, target_len=target)


def longest(job: Job) -> int:
    """Return the longest length that a model takes, as its config says."""
    config = job.model.config
    for held in (config, *(config.get(name) for name in NESTED)):
        if isinstance(held, dict):
            for key in POSITIONS:
                value = held.get(key)
                if isinstance(value, int) and value > 0:
                    return value
    return LONGEST
