"""Jobs over several ranks on the fake card, and what is left of them on rank 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.job import Job, OptimizerSpec, ShardingSpec
from oomdoctor.record import replace
from oomdoctor.worker.fake.trace import trace
from tests.worker.fake.cards import A100
from tests.worker.jobs import JOB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.memory.stream import Allocation, Stream

FOREACH = OptimizerSpec(implementation="foreach")


def sharded(kind: str, ranks: int = 4, **changes: object) -> Job:
    spec = changes.pop("sharding", ShardingSpec())
    assert isinstance(spec, ShardingSpec)
    plain = replace(JOB, optimizer=FOREACH, framework="torch", clip_norm=None)
    return replace(plain, sharding=replace(spec, kind=kind, ranks=ranks), **changes)


def traced(job: Job) -> Stream:
    return trace(job, A100)


def left(stream: Stream) -> Iterator[Allocation]:
    """Go through what nobody freed."""
    freed = {~event for event in stream.events if event < 0}
    return (one for number, one in enumerate(stream.allocations) if number not in freed)


def bytes_left(stream: Stream, category: str) -> int:
    return sum(one.size for one in left(stream) if one.category == category)


def bytes_at(stream: Stream, kind: str, text: str) -> int:
    """Return the bytes that are held where a phase, or the first part of a name, begins."""
    at = next(one.at for one in stream.marks if one.kind == kind and one.text == text)
    sizes = [one.size for one in stream.allocations]
    return sum(sizes[event] if event >= 0 else -sizes[~event] for event in stream.events[:at])
