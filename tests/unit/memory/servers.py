"""Servers of known models and cards, for tests of their budgets."""

from __future__ import annotations

from typing import Any

from oomdoctor.facts import model_configs
from oomdoctor.memory.formula_engine import rows_of
from oomdoctor.model.job import CardSpec, Job, ModelSpec, QuantSpec, ShardingSpec
from oomdoctor.model.serving import ServingSpec

GIB = 1 << 30
CARD_24 = CardSpec(name="a card", capability=(8, 9), processors=128, total_bytes=int(23.5 * GIB))


def card(gib: float, name: str = "a card") -> CardSpec:
    """Return a card of a size."""
    return CardSpec(name=name, capability=(8, 0), processors=108, total_bytes=int(gib * GIB))


def server(
    name: str,
    *,
    tensor: int = 1,
    quant: str | None = None,
    versions: dict[str, str] | None = None,
    **given: Any,
) -> ServingSpec:
    """Return how a model of the table is served."""
    known = model_configs.lookup(name)
    assert known is not None
    job = Job(
        model=ModelSpec(name=name, config=known.config, source="table", params=known.params),
        task="serving",
        optimizer=None,
        quant=None if quant is None else QuantSpec(kind=quant),
        sharding=ShardingSpec(tensor=tensor),
        versions=versions or {},
    )
    return ServingSpec(job=job, **given)


def size_of(spec: ServingSpec, where: CardSpec, name: str) -> float:
    """Return the GiB of one row."""
    return next(one.bytes for one in rows_of(spec, where) if one.name == name) / GIB
