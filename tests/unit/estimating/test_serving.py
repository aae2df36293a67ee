"""Estimates of servers, and of what no formula covers."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.errors import InputError
from oomdoctor.estimating.formula import Formula
from oomdoctor.estimating.serving import serving_estimate
from oomdoctor.facts import model_configs
from oomdoctor.model.job import CardSpec, Job, ModelSpec
from oomdoctor.model.serving import ServingSpec

CARD = CardSpec(name="a card", capability=(8, 9), processors=128, total_bytes=int(23.5 * 2**30))


def spec(engine: str = "vllm", **given: Any) -> ServingSpec:
    """Return how a model of the table is served."""
    known = model_configs.lookup("meta-llama/Llama-3.1-8B")
    assert known is not None
    model = ModelSpec(name="a model", config=known.config, source="table", params=known.params)
    job = Job(model=model, task="serving", optimizer=None)
    return ServingSpec(job=job, engine=engine, **given)


@pytest.mark.parametrize(
    "server",
    [
        spec(longest=8192),
        spec("sglang", longest=8192),
        spec("tgi", longest=8192),
        spec("llama.cpp", longest=8192, cache="f16", file_type="q8_0"),
    ],
)
def test_owners_and_parts_add_up_to_the_peak(server: ServingSpec) -> None:
    made = serving_estimate(server, [CARD])

    assert sum(one.bytes for one in made.parts) == made.peak_allocated_bytes
    assert sum(one.bytes for one in made.owners) == made.peak_allocated_bytes
    assert made.outside_low_bytes < made.outside_high_bytes


def test_without_cards_the_usual_ones_are_judged() -> None:
    made = serving_estimate(spec(longest=8192), [])

    assert len(made.verdicts) >= 8
    assert made.serving is not None
    assert not any(one.changes for one in made.serving.cards)


def test_the_margin_is_what_the_share_leaves() -> None:
    made = serving_estimate(spec(longest=8192, utilization=0.9), [CARD])
    assert made.serving is not None
    one, verdict = made.serving.cards[0], made.verdicts[0]

    assert verdict.margin_low_bytes == one.budget_bytes - one.needed_high_bytes
    assert verdict.margin_high_bytes > verdict.margin_low_bytes


@pytest.mark.parametrize("name", ["efficientnet_b0", "UNet2DConditionModel"])
def test_a_network_without_formula_says_what_to_give(name: str) -> None:
    model = ModelSpec(name=name, config={"library": "torchvision", "name": name}, source="config")

    with pytest.raises(InputError, match=f"no formula covers {name}") as caught:
        Formula().peak(Job(model=model, task="image-classification", image_size=224))
    assert "config.json" in str(caught.value.hint)
