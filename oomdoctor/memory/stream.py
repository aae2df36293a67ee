"""The allocations of a job in order: what the tracer writes, what a recording on CUDA code holds.

An event is one number: `i` where allocation `i` is made, `~i` (negative) where it is freed. Marks
stand between events: the beginning of a phase, a part of it, a call of `empty_cache`, a use of a
block on another stream. A stream says nothing of addresses, segments or cards: `stream_replay`
puts it through the allocator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PHASES = ("load", "step 1", "step 2", "evaluation", "generation", "save", "merge", "resume")
PARTS = ("", "forward", "loss", "backward", "clip", "optimizer", "zero-grad")
CATEGORIES = (
    *("weights", "adapter", "gradient", "optimizer", "activation", "logits and loss"),
    *("kv cache", "input", "workspace", "communication", "temporary"),
)


class Allocation(NamedTuple):
    """One allocation: bytes as asked for, and what asked.

    `module` is the path of the module that runs forward, or whose backward runs ("" outside of
    modules); `operator` as torch names it (aten.mm.default) or a workspace's name; `category` is
    one of CATEGORIES or "" where only the whole stream can tell.
    """

    size: int
    operator: str
    module: str
    phase: str
    part: str
    category: str = ""
    cuda_stream: int = 0


class Mark(NamedTuple):
    """Something between events: before event number `at`.

    | kind | text | number |
    |---|---|---|
    | phase | name of the phase | |
    | part | name of the part | |
    | empty-cache | | |
    | use | | allocation that another CUDA stream uses (record_stream); text: the stream |
    """

    at: int
    kind: str
    text: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Allocations, events and marks of one job on one card.

    `assumptions` are sentences on what the tracer had to decide without values; `origin` says
    who wrote it ("simulated with torch 2.13.0", "recorded from torch 2.13.0's CUDA code").
    """

    allocations: Sequence[Allocation]
    events: Sequence[int]
    marks: Sequence[Mark]
    origin: str
    assumptions: tuple[str, ...] = ()
    facts: Mapping[str, object]
