"""Who has the memory at the peak of a replayed stream: categories, six parts, largest owners.

Bytes are those of blocks, as the allocator counts them, so that all parts add up to the peak.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.memory.six_parts import six_parts
from oomdoctor.memory.stream import CATEGORIES
from oomdoctor.memory.stream_category import categorised
from oomdoctor.model.estimate import Owner, PartBytes
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.memory.stream import Stream
    from oomdoctor.memory.stream_replay import Replay

OWNERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What is allocated after `event`, by category, by the six parts and by owner."""

    event: int
    total: int
    categories: tuple[PartBytes, ...]
    parts: tuple[PartBytes, ...]
    owners: tuple[Owner, ...]


def balance(
    stream: Stream,
    played: Replay,
    *,
    event: int | None = None,
    owners: int = OWNERS,
    categories: Sequence[str] | None = None,
) -> Balance:
    """Say who has what after an event, the one of the peak unless another is meant."""
    at = played.peak_event if event is None else event
    kinds = categorised(stream) if categories is None else categories
    live = live_after(stream, at)
    by_kind: Counter[str] = Counter()
    sizes: Counter[tuple[str, ...]] = Counter()
    counts: Counter[tuple[str, ...]] = Counter()
    for number in live:
        one, size = stream.allocations[number], played.blocks[number]
        key = (owner_path(one.module), one.operator, kinds[number], one.phase, one.part)
        by_kind[kinds[number]] += size
        sizes[key] += size
        counts[key] += 1
    rows = tuple(PartBytes(name=name, bytes=by_kind[name]) for name in CATEGORIES if by_kind[name])
    return Balance(
        event=at,
        total=sum(by_kind.values()),
        categories=rows,
        parts=six_parts(by_kind),
        owners=_owners(sizes, counts, owners),
    )


def live_after(stream: Stream, event: int) -> tuple[int, ...]:
    """Return the allocations that are there after an event, oldest first."""
    held: dict[int, None] = {}
    for one in stream.events[: event + 1]:
        if one < 0:
            del held[~one]
        else:
            held[one] = None
    return tuple(held)


@cache
def folded(module: str) -> str:
    """Return a module's path with layers folded: `model.layers.*.mlp`."""
    return re.sub(r"(?<=\.)\d+(?=\.|\Z)", "*", module)


@cache
def owner_path(module: str) -> str:
    """Return a folded path as the model has it."""
    return folded(own_path(module))


@cache
def own_path(module: str) -> str:
    """Return a path as the model has it: without what PEFT puts around the model and its layers."""
    own = module.removeprefix("base_model.model").removesuffix(".base_layer").lstrip(".")
    return own or module


def _owners(
    sizes: Counter[tuple[str, ...]], counts: Mapping[tuple[str, ...], int], most: int
) -> tuple[Owner, ...]:
    ordered: Iterable[tuple[tuple[str, ...], int]] = sorted(
        sizes.items(), key=lambda item: (-item[1], item[0])
    )
    return tuple(
        Owner(
            module=key[0],
            operator=key[1],
            category=key[2],
            phase=key[3],
            part=key[4],
            bytes=size,
            allocations=counts[key],
        )
        for key, size in list(ordered)[:most]
    )
