"""What each allocation of a stream is, where only the whole stream can tell.

The tracer names what it knows (weights, gradients, states, inputs). The rest follows from where an
allocation was made and what it outlives:

| made in | and | is |
|---|---|---|
| load | outlives it | weights |
| forward | after the head of the model has run | logits and loss |
| forward | outlives forward | activation |
| loss | | logits and loss |
| backward | before it has left the head | logits and loss |
| backward | outlives backward | gradient |
| optimizer | outlives the optimizer's step | optimizer |
| evaluation, generation | outlives the module that made it | activation |
| anywhere | else | temporary |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.stream_lifetimes import ends_of, index_at, lifetimes, stretches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.stream import Allocation, Stream
    from oomdoctor.memory.stream_lifetimes import Lifetimes

WEIGHTS, GRADIENT, OPTIMIZER = "weights", "gradient", "optimizer"
ACTIVATION, LOGITS, TEMPORARY = "activation", "logits and loss", "temporary"
HEADS = ("lm_head", "embed_out", "output_layer", "score", "classifier", "qa_outputs", "lm_loss")
LOSSES = ("log_softmax", "nll_loss", "cross_entropy", "fused_linear_cross_entropy")


def categorised(stream: Stream) -> tuple[str, ...]:
    """Return the category of every allocation of a stream."""
    return tuple(_Reader(stream).read())


class _Reader:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._bounds = stretches(stream)
        self._starts = [one.start for one in self._bounds]
        self._ends = ends_of(self._bounds, len(stream.events))
        self._life: Lifetimes = lifetimes(stream)
        self._near_head = _near_head(stream, self._starts, self._life)

    def read(self) -> list[str]:
        return [
            one.category or self._category(number, one)
            for number, one in enumerate(self._stream.allocations)
        ]

    def _category(self, number: int, one: Allocation) -> str:
        at = index_at(self._starts, self._life.born[number])
        outlives = self._life.died[number] >= self._ends[at]
        part = one.part
        if part == "loss" or number in self._near_head:
            return LOGITS
        if part == "forward":
            return ACTIVATION if outlives or not _trains(one.phase) else TEMPORARY
        if not outlives:
            return TEMPORARY
        if part == "backward":
            return GRADIENT
        if part == "optimizer":
            return OPTIMIZER
        return WEIGHTS if one.phase == "load" else TEMPORARY


def _trains(phase: str) -> bool:
    return phase.startswith("step")


def _near_head(stream: Stream, starts: Sequence[int], life: Lifetimes) -> set[int]:
    """Return the allocations of the head and the loss: the end of forward, the start of backward.

    A model computes logits last, so what follows them in forward belongs to them (an fp32 copy, the
    shifted rows, the loss); backward begins with the same modules.
    """
    found: set[int] = set()
    modules: set[str] = {""}
    seen: set[int] = set()
    left: set[int] = set()
    for number, one in enumerate(stream.allocations):
        if one.part == "loss":
            modules.add(one.module)
        if one.part not in ("forward", "backward"):
            continue
        at = index_at(starts, life.born[number])
        if one.part == "forward":
            if _is_head(one):
                seen.add(at)
            if at in seen:
                found.add(number)
                modules.add(one.module)
        elif at not in left and (seen or len(modules) > 1):
            if one.module in modules or _is_loss(one.operator):
                found.add(number)
            else:
                left.add(at)
    return found


def _is_head(one: Allocation) -> bool:
    return one.module.rpartition(".")[2] in HEADS or _is_loss(one.operator)


def _is_loss(operator: str) -> bool:
    return any(word in operator for word in LOSSES)
