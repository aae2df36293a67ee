"""The budget of llama.cpp and of pipelines of diffusers against what was published."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.memory import formula_local, serving_rows
from oomdoctor.memory.serving_budget import budget_of, budget_with_changes, host_bytes
from oomdoctor.model.estimate import FITS, OOM
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.model.serving import ServingSpec
from oomdoctor.record import replace
from tests.unit.memory.servers import CARD_24, GIB, card, server

MIB = 1 << 20


def llama(name: str = "meta-llama/Meta-Llama-3-8B", **given: Any) -> ServingSpec:
    """Return a model that llama.cpp serves."""
    return server(name, engine="llama.cpp", **{"cache": "f16", "file_type": "q4_k_m", **given})


def test_the_buffers_of_a_published_log_of_llama_cpp() -> None:
    found = {one.name: one.bytes for one in budget_of(llama(longest=8192), CARD_24).rows}
    assert found[serving_rows.WEIGHTS] / MIB == pytest.approx(4403.5, rel=0.003)
    assert found[formula_local.CACHE] / MIB == 1024
    assert found[formula_local.COMPUTE] / MIB == pytest.approx(258.5, rel=0.001)


def test_an_output_layer_in_main_memory_is_brought_for_a_pass() -> None:
    spec = llama(longest=8192, layers_on_card=32)
    found = {one.name: one.bytes for one in budget_of(spec, CARD_24).rows}
    assert found[formula_local.COMPUTE] / MIB == pytest.approx(669.48, rel=0.001)


def test_layers_that_do_not_fit_stay_in_main_memory() -> None:
    spec = llama("meta-llama/Llama-3.1-70B", longest=8192)
    found = budget_with_changes(spec, CARD_24)
    count = int(next(one for one in found.changes if one.startswith("-ngl")).split()[1])
    assert found.verdict == OOM
    assert budget_of(replace(spec, layers_on_card=count), CARD_24).verdict == FITS
    assert budget_of(replace(spec, layers_on_card=count + 1), CARD_24).verdict != FITS
    assert host_bytes(replace(spec, layers_on_card=count)) > host_bytes(spec) + 10 * GIB


def test_cards_of_llama_cpp_deal_out_the_layers() -> None:
    alone = budget_of(llama(longest=8192), CARD_24)
    shared = budget_of(llama(longest=8192, tensor=2), CARD_24)
    assert shared.cache_bytes == alone.cache_bytes // 2


def pipeline(name: str, *, dtype: str = "bf16", images: int = 1, **given: Any) -> ServingSpec:
    """Return a pipeline of diffusers."""
    model = ModelSpec(name=name, config={"library": "diffusers", "name": name}, source="table")
    job = Job(model=model, task="serving", optimizer=None, dtype=dtype, batch=images)
    return ServingSpec(job=job, engine="diffusers", **given)


def test_a_measured_pipeline_lies_within_the_band() -> None:
    spec = pipeline("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", dtype="fp16")
    found = budget_of(spec, card(80))
    context = next(one for one in found.rows if one.name == serving_rows.CONTEXT)
    low = (found.needed_low_bytes - context.low_bytes) / GIB
    assert low == pytest.approx(12.086, rel=0.05)  # measured without the work of the decoder
    assert found.needed_high_bytes / GIB < 20


def test_offloading_is_named_where_a_pipeline_does_not_fit() -> None:
    found = budget_with_changes(pipeline("black-forest-labs/FLUX.1-dev"), card(15.6))
    assert found.verdict == OOM
    assert "enable_sequential_cpu_offload()" in found.changes
    assert "enable_model_cpu_offload()" not in found.changes


def test_an_unknown_pipeline_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody/pipe"):
        budget_of(pipeline("nobody/pipe"), CARD_24)


def test_a_pipeline_in_parts_needs_less_than_a_whole_one() -> None:
    name = "black-forest-labs/FLUX.1-dev"
    whole, parts, layers = (
        budget_of(pipeline(name, offload=kind), CARD_24).needed_bytes
        for kind in (None, "model", "sequential")
    )

    assert whole > parts > layers
