"""What the numbers of a job can be at all: kinds of quantity, each with its least and its most.

per_device_train_batch_size: 0     rows: a whole number from 1
gpu_memory_utilization: 7          a share: from 0 to 1
A number that says "whatever fits" somewhere (-1, 0) is never a value, and no mistake either.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.core import Fact

KINDS = ("rows", "tokens", "ranks", "adapter", "share", "rate")
HUGE = 10**64


class Bound(NamedTuple):
    """What a kind of number can be: `excused` are those that ask a program to choose."""

    kind: str
    words: str
    least: float
    most: float
    whole: bool = True
    excused: tuple[float, ...] = ()
    told_above: bool = True

    def holds(self, value: float) -> bool:
        """Say whether a job can have the number."""
        return self.least <= value <= self.most and (not self.whole or value == int(value))

    def said(self, value: float) -> str:
        """Say what the number can be, its most too where it is above that."""
        return f"{self.words} and at most {self.most:,}" if value > self.most > 1 else self.words

    def is_mistake(self, value: float) -> bool:
        """Say whether no program takes the number for anything."""
        if math.isnan(value):
            return True
        if value in self.excused or (value > self.most and not self.told_above):
            return False
        return not self.least <= value <= self.most and (
            not self.whole or abs(value) >= HUGE or value == int(value)
        )


_WHOLE = "a whole number of at least 1"
_ROWS = Bound("rows", _WHOLE, 1, 10**7, excused=(-1,))
_ALL_ROWS = Bound("rows", _WHOLE, 1, 10**10, excused=(-1,))
_TOKENS = Bound("tokens", _WHOLE, 1, 10**9, excused=(-1, 0), told_above=False)
_RANKS = Bound("ranks", _WHOLE, 1, 10**7, excused=(-1,))
_GROUP = Bound("ranks", _WHOLE, 1, 10**7, excused=(-1, 0))
_ADAPTER = Bound("adapter", _WHOLE, 1, 10**6, excused=(0,))
_SHARE = Bound("share", "a share from 0 to 1", 0, 1, whole=False, excused=(-1,))
_RATE = Bound("rate", "a number of at least 0", 0, 10**30, whole=False)

BOUNDS: Mapping[str, Bound] = {
    **dict.fromkeys(("train.micro_batch", "train.grad_accum"), _ROWS),
    "train.global_batch": _ALL_ROWS,
    **dict.fromkeys(("train.seq_len", "serve.max_len"), _TOKENS),
    "dist.world_size": _RANKS,
    **dict.fromkeys(("serve.tensor_parallel", "dist.tensor_ranks", "dist.pipeline_ranks"), _GROUP),
    "lora.rank": _ADAPTER,
    **dict.fromkeys(("serve.utilization", "serve.static_fraction", "gen.engine_share"), _SHARE),
    **dict.fromkeys(("train.warmup_ratio", "lora.dropout"), _SHARE),
    **dict.fromkeys(("train.learning_rate", "train.weight_decay"), _RATE),
}


def can_be(fact: Fact) -> bool:
    """Say whether a job can have the value of a fact; what has no bounds can be anything."""
    bound = BOUNDS.get(fact.key)
    value = fact.value
    if bound is None or isinstance(value, (bool, str)):
        return True
    return bound.holds(value)
