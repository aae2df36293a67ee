"""The config.json of a model by its name, as transformers builds the model from it.

    Qwen/Qwen2.5-7B-Instruct -> {"model_type": "qwen2", "hidden_size": 3584, ...}

Models of torchvision and diffusers have {"library": ..., "name" or "class": ...} in its place.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts import models
from oomdoctor.facts.tables import table
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Known(NamedTuple):
    """A model of the table with its config; `variant` says that a suffix of its name was dropped.

    `params` is the published number of parameters.
    """

    name: str
    architecture: str
    config: Mapping[str, object]
    params: int | None
    variant: bool


@cache
def _configs() -> Mapping[str, Mapping[str, object]]:
    """Return the table; read once, when first asked for."""
    loaded: dict[str, Mapping[str, object]] = table("model_configs")
    return loaded


def lookup(name: str) -> Known | None:
    """Return the model that `name` means with its config, None where that is not certain."""
    found = models.lookup(name)
    return None if found is None else _known(found)


def nearest(name: str) -> Known | None:
    """Return the model whose name, with its size, is part of `name`; None where there is none."""
    found = models.nearest(name)
    return None if found is None else _known(found)


def _known(found: models.Found) -> Known | None:
    model = found.model
    if model.name not in _configs():
        return None
    return Known(
        name=model.name,
        architecture=model.architecture,
        config=_configs()[model.name],
        params=model.shape.get("params"),
        variant=found.variant,
    )
