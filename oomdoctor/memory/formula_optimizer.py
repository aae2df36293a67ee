"""Optimizer states and what a step needs besides: bytes for each trained weight.

| optimizer | states | temporaries of a step |
|---|---|---|
| AdamW of torch | twice the weight, in its dtype | foreach: once all weights; fused: none |
| AdamW of bitsandbytes, 8 bit | 2.03 bytes; below 4,096 values and embeddings in fp32 | none |
| Adafactor | rows + columns in fp32 | three fp32 copies of the largest weight |
| RMSprop | once the weight | foreach: once all weights, twice with a decay |
| Adagrad | once the weight | foreach: twice all weights |
| SGD, with momentum | none, once the weight | none; with a decay, foreach: once all weights |
| Lion | once the weight | one weight |
| GaLore | of the projected gradient: rank x (longer side), and the projector | as Adafactor |

ZeRO keeps fp32 weights beside its states, and both are split over the ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.memory.tape import Param
    from oomdoctor.model.job import Job

SMALL = 4096
EIGHT = 1 + 4 / 256
FOUR = 0.5 + 4 / 128
FP32 = 4
_MOMENTS = {
    "adamw": 2,
    "adam": 2,
    "adamw-8bit": 2,
    "adamw-4bit": 2,
    "ademamix": 3,
    "ademamix-8bit": 3,
    "lion": 1,
    "lion-8bit": 1,
    "sgd": 0,
    "sgd-momentum": 1,
    "rmsprop": 1,
    "adagrad": 1,
    "muon": 1,
}
_LOW_RANK = ("galore", "galore-8bit", "apollo", "apollo-8bit")
_ONE_BY_ONE = ("adafactor", "galore", "galore-8bit", "apollo", "apollo-8bit", "muon")
_WIDE = ("ademamix", "adamw-bnb")
"""Optimizers of bitsandbytes, whose states are in fp32 whatever the weights."""
_COPIES = {"sgd": 0, "sgd-momentum": 0, "adagrad": 2}
"""Copies of all weights that a foreach step makes; one where nothing else is said."""
_INTO_GRADIENTS = ("sgd", "sgd-momentum", "rmsprop")
"""Optimizers that add a decayed weight to a copy of its gradient, beside their other copies."""
_TABLES = ("embed_tokens", "lm_head", "positions")


def state_bytes(job: Job, weights: Iterable[tuple[Param, int]], *, master: bool = False) -> int:
    """Return the bytes of all states on the card; paged and offloaded ones are elsewhere."""
    spec = job.optimizer
    if spec is None or spec.paged or spec.offload is not None:
        return 0
    total = 0.0
    for param, times in weights:
        if param.trains:
            total += times * _one(job, param, master=master)
    return int(total)


def _one(job: Job, param: Param, *, master: bool) -> float:
    """Return the bytes of the states of one weight."""
    spec = job.optimizer
    if spec is None:
        return 0
    name, count = spec.name, param.count
    width = FP32 if master or name in _WIDE else param.stored
    kept = FP32 * count if master and param.stored < FP32 else 0
    sides = _sides(param)
    if name == "adafactor":
        return kept + FP32 * sum(sides)
    if name in _LOW_RANK:
        sides = sides[: 0 if param.name.endswith(_TABLES) else 2]  # tables are not projected
        return kept + _projected(name, count, sides, width, spec.rank or 128)
    moments = _MOMENTS.get(name, 2)
    if name == "muon" and (len(sides) < 2 or param.name in _TABLES):
        moments = 2
    if name.endswith("8bit"):
        table = param.name.endswith("embed_tokens") and job.framework != "torch"
        each = FP32 if count < SMALL or table else EIGHT
        return kept + moments * count * each
    if name.endswith("4bit"):
        return kept + moments * count * FOUR
    return kept + moments * count * width


def _sides(param: Param) -> tuple[float, ...]:
    """Return the sides of a matrix; one side for what is small or has one dimension."""
    if param.count < SMALL or "norm" in param.name or param.name.endswith("bias"):
        return (float(param.count),)
    side = param.count**0.5
    return (side, side)


def _projected(name: str, count: int, sides: tuple[float, ...], width: int, rank: int) -> float:
    if len(sides) < 2 or count < SMALL * rank:
        return 2.0 * count * width
    each = EIGHT if name.endswith("8bit") else width
    return 2 * rank * sides[0] * each + rank * sides[1] * width


def step_bytes(job: Job, weights: Iterable[tuple[Param, int]]) -> int:
    """Return what a step needs for a moment besides weights, gradients and states."""
    spec = job.optimizer
    trained = [(param, times) for param, times in weights if param.trains]
    elsewhere = spec is not None and spec.offload is not None
    if spec is None or not trained or elsewhere or job.sharding.kind.startswith("zero"):
        return 0
    largest = max(param.count for param, _ in trained)
    if spec.name in _ONE_BY_ONE:
        return 3 * FP32 * largest
    if spec.name.endswith("bit") or spec.name in _WIDE or spec.implementation == "fused":
        return 0
    if spec.in_backward or spec.implementation == "for-loop" or spec.name == "lion":
        idle = spec.name.startswith("sgd") and not spec.decay
        return 0 if idle else FP32 * largest
    copies = _COPIES.get(spec.name, 1) + (spec.name in _INTO_GRADIENTS and spec.decay != 0)
    return copies * sum(param.count * param.stored * times for param, times in trained)
